#pragma once

#include <string>
#include <string_view>

namespace efimd::service {

/// Foreign text for a terminal or a log: names in model files, paths, messages of other programs.
/// Controls become "?", C1 and DEL too, and invalid UTF-8 U+FFFD; line ends stay.
std::string printable(std::string_view text);

}  // namespace efimd::service
