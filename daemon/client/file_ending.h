#pragma once

#include <string>
#include <string_view>

namespace efimd::service {

/// The ending of files in a language, without its dot: letters and digits, lsp::kPartEndingBytesMax at
/// most. Of a language without a known one it is made of its name, such as "sql".
std::string file_ending(std::string_view language);

}  // namespace efimd::service
