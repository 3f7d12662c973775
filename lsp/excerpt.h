#pragma once

#include <string>
#include <string_view>

namespace efimd::lsp {

/// Foreign bytes as an error shows them: in quotes, cut after 64 bytes, all but printable ASCII as
/// \xNN.
std::string excerpt(std::string_view bytes);

/// An error's message without what the peer sent, so that a log can keep it: quoted runs, as
/// excerpt() writes them, become "...", and what Field::refuse() found at a path is cut off.
/// Positions, limits and field paths stay.
std::string without_excerpts(std::string_view message);

}  // namespace efimd::lsp
