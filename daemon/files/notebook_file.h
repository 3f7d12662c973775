#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace efimd::service {

/// A notebook holds its outputs, which are no code: images, mostly.
inline constexpr std::size_t kNotebookBytesMax = std::size_t{4} << 20;

/// Whether it is a Jupyter notebook's file, by its name.
bool is_notebook(std::string_view path);

/// What a file's text is known by: "/a.ipynb.py" of "/a.ipynb", as the document of its Python cells is
/// (lsp::text_path_of()), else the path itself.
std::string text_path(std::string path);
/// The file that text_path() was made of.
std::string file_of_text(std::string path);

/// The text of a notebook's Python cells, joined as Notebooks does (daemon/client/notebooks.h). nullopt
/// if it is no notebook of format 4 (nbformat.readthedocs.io), is in another language, or has no such
/// cells. The JSON is parsed within the limits of lsp::parse_json().
std::optional<std::string> python_cells(std::string_view json);

}  // namespace efimd::service
