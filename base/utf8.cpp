#include "base/utf8.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace efimd::utf8 {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

constexpr bool is_scalar(char32_t value) {
  return value < 0xD800 || (value > 0xDFFF && value <= 0x10FFFF);
}

/// Bytes that a leading byte announces: 1-4, or 0 for a byte that cannot lead.
constexpr int announced_length(std::uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

}  // namespace

CodePoint decode(std::string_view text, std::size_t byte) {
  if (byte >= text.size()) return {};
  const auto lead = static_cast<std::uint8_t>(text[byte]);
  const int length = announced_length(lead);
  if (length == 1) return {lead, 1, true};
  const CodePoint invalid{kReplacement, 1, false};
  if (length == 0 || text.size() - byte < static_cast<std::size_t>(length)) return invalid;
  char32_t value = lead & (0x7FU >> length);
  for (int i = 1; i < length; ++i) {
    const char next = text[byte + static_cast<std::size_t>(i)];
    if (!is_continuation(next)) return invalid;
    value = value << 6 | (static_cast<std::uint8_t>(next) & 0x3FU);
  }
  static constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[static_cast<std::size_t>(length)] || !is_scalar(value)) return invalid;
  return {value, length, true};
}

void append(std::string& text, char32_t value) {
  if (!is_scalar(value)) value = kReplacement;
  const auto put = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

std::size_t ascii_prefix(std::string_view text) {
  std::size_t byte = 0;
  for (; byte + 8 <= text.size(); byte += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + byte, 8);
    if ((eight & 0x8080808080808080U) != 0) break;
  }
  while (byte < text.size() && static_cast<std::uint8_t>(text[byte]) < 0x80) ++byte;
  return byte;
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t byte = 0;
  for (;;) {
    byte += ascii_prefix(text.substr(byte));
    const CodePoint point = decode(text, byte);
    if (!point.valid || point.length == 0) return byte;
    byte += static_cast<std::size_t>(point.length);
  }
}

std::string sanitized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = valid_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    append(out, kReplacement);
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace efimd::utf8
