#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace efimd::utf8 {

/// One decoded code point. An invalid byte decodes as U+FFFD of length 1, so that loops always advance.
struct CodePoint {
  char32_t value = 0;
  int length = 0;  ///< bytes taken: 1-4; 0 only at the end of the text
  bool valid = true;
};

/// Decodes the code point that starts at `byte`. Overlong forms, surrogates and values past U+10FFFF are invalid
/// (RFC 3629).
CodePoint decode(std::string_view text, std::size_t byte);

/// Appends `value` (U+FFFD when it is not a scalar value).
void append(std::string& text, char32_t value);

/// Bytes of the leading part that is ASCII, eight at a time: most of any source text.
std::size_t ascii_prefix(std::string_view text);

/// Bytes of the longest valid leading part.
std::size_t valid_prefix(std::string_view text);

/// `text` with each invalid byte replaced by U+FFFD; a copy only.
std::string sanitized(std::string_view text);

/// Whether `byte` is 10xxxxxx, the inside of a code point.
constexpr bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// The code point border at or below `byte`; the text's end past it.
constexpr std::size_t floor(std::string_view text, std::size_t byte) {
  if (byte >= text.size()) return text.size();
  while (byte > 0 && is_continuation(text[byte])) --byte;
  return byte;
}

}  // namespace efimd::utf8
