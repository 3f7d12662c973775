#pragma once

#include <string>
#include <string_view>

namespace efimd::lsp {

/// Foreign bytes as an error shows them: in quotes, cut after 64 bytes, all but printable ASCII as
/// \xNN.
std::string excerpt(std::string_view bytes);

/// An error's message without the peer's text, so that a log can keep it. Quoted runs, as excerpt()
/// writes them, become "..."; what Field::refuse() found at a path is cut off. Positions, limits
/// and field paths stay.
std::string without_excerpts(std::string_view message);

}  // namespace efimd::lsp
