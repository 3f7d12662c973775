#pragma once

#include <string_view>

namespace efimd::text {

/// The language of a notebook's cell, as LSP names it: what the editor says, but for a Python cell whose
/// first line gives it to another language, such as "%%bash". Without a name it is a plain text.
std::string_view cell_language(std::string_view told, std::string_view text);

/// What stands between a notebook's code cells where they are one text.
inline constexpr std::string_view kBetweenCells = "\n\n";

}  // namespace efimd::text
