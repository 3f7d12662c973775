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

std::string without_excerpts(std::string_view message) {
  // Numbers are not quoted, and a number may be a secret, too.
  message = message.substr(0, message.find(", not "));
  std::string out;
  for (std::size_t at = 0; at < message.size(); ++at) {
    out += message[at];
    if (message[at] != '"') continue;
    out += "...\"";
    for (++at; at < message.size() && message[at] != '"'; ++at)
      if (message[at] == '\\') ++at;
  }
  return out;
}

}  // namespace efimd::lsp
