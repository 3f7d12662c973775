#include "lsp/excerpt.h"

#include <cstddef>

namespace efimd::lsp {

std::string excerpt(std::string_view bytes) {
  constexpr std::size_t kShownMax = 64;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : bytes.substr(0, kShownMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '"' || byte == '\\') out += '\\';
    if (byte >= 0x20 && byte < 0x7F) {
      out += c;
    } else {
      out += "\\x";
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 15U];
    }
  }
  out += bytes.size() > kShownMax ? "\"..." : "\"";
  return out;
}

}  // namespace efimd::lsp
