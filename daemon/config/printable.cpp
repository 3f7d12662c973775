#include "daemon/config/printable.h"

#include <cstddef>

#include "base/utf8.h"

namespace efimd::service {

std::string printable(std::string_view text) {
  const std::string valid = utf8::sanitized(text);
  std::string out;
  out.reserve(valid.size());
  for (std::size_t at = 0; at < valid.size(); ++at) {
    const auto byte = static_cast<unsigned char>(valid[at]);
    // U+0080..U+009F are C2 80..C2 9F, and some terminals obey them.
    const bool c1 = byte == 0xC2 && static_cast<unsigned char>(valid[at + 1]) < 0xA0;
    if (c1) ++at;
    const bool control = (byte < 0x20 && byte != '\n') || byte == 0x7F;
    out += c1 || control ? '?' : valid[at];
  }
  return out;
}

}  // namespace efimd::service
