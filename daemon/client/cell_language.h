#pragma once

#include <string>
#include <string_view>

namespace efimd::service {

/// The language of a notebook's cell, as LSP names it: what the editor says, but for a Python cell whose
/// first line gives it to another language, such as "%%bash". Without a name it is a plain text.
std::string_view cell_language(std::string_view told, std::string_view text);

/// The ending of files in a language, without its dot: letters and digits, lsp::kPartEndingBytesMax at
/// most. Of a language without a known one it is made of its name, such as "sql".
std::string file_ending(std::string_view language);

}  // namespace efimd::service
