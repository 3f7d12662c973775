#include "daemon/files/notebook_file.h"

#include <algorithm>
#include <utility>

#include "daemon/text/cell_language.h"
#include "lsp/json_rpc.h"
#include "lsp/member.h"

namespace efimd::service {

using lsp::Json;
using lsp::member;

namespace {

constexpr std::string_view kNotebookEnding = ".ipynb";
constexpr std::string_view kTextEnding = ".py";

/// The language of cells that name none: that of the kernel. Only Python's may leave it out.
std::string kernel_language(const Json& notebook) {
  const Json& metadata = member(notebook, "metadata");
  for (const Json* const name : {&member(member(metadata, "language_info"), "name"),
                                 &member(member(metadata, "kernelspec"), "language")})
    if (name->is_string()) return name->get<std::string>();
  return "python";
}

/// One string, or one for each line.
std::optional<std::string> source_of(const Json& cell) {
  const Json& source = member(cell, "source");
  if (source.is_string()) return source.get<std::string>();
  if (!source.is_array()) return std::nullopt;
  std::string text;
  for (const Json& line : source) {
    if (!line.is_string()) return std::nullopt;
    text += line.get_ref<const std::string&>();
  }
  return text;
}

bool is_python(const Json& cell, const std::string& kernel, std::string_view text) {
  const Json& own = member(member(member(cell, "metadata"), "vscode"), "languageId");
  const std::string told = own.is_string() ? own.get<std::string>() : kernel;
  return text::cell_language(told, text) == "python";
}

}  // namespace

bool is_notebook(std::string_view path) { return path.ends_with(kNotebookEnding); }

std::string text_path(std::string path) {
  if (is_notebook(path)) path += kTextEnding;
  return path;
}

std::string file_of_text(std::string path) {
  const std::size_t without = path.size() - std::min(path.size(), kTextEnding.size());
  if (path.ends_with(kTextEnding) && is_notebook(std::string_view(path).substr(0, without)))
    path.resize(without);
  return path;
}

std::optional<std::string> python_cells(std::string_view json) {
  const auto notebook = lsp::parse_json(json);
  if (!notebook || member(*notebook, "nbformat") != 4) return std::nullopt;
  const Json& cells = member(*notebook, "cells");
  if (!cells.is_array()) return std::nullopt;
  const std::string kernel = kernel_language(*notebook);
  std::optional<std::string> joined;
  for (const Json& cell : cells) {
    if (member(cell, "cell_type") != "code") continue;
    const std::optional<std::string> text = source_of(cell);
    if (!text || !is_python(cell, kernel, *text)) continue;
    if (joined) joined->append(text::kBetweenCells);
    joined = std::move(joined).value_or("") + *text;
  }
  return joined;
}

}  // namespace efimd::service
