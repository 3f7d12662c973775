#include "engine/tokenizer/byte_letters.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace efimd::engine {
namespace {

constexpr char32_t kLettersEnd = 0x144;  ///< 256 + the 68 bytes that do not print

constexpr bool prints(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr auto kLetters = [] {
  std::array<char32_t, 256> letters{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    letters[static_cast<std::size_t>(byte)] = prints(byte) ? static_cast<char32_t>(byte) : next++;
  return letters;
}();

constexpr auto kBytes = [] {
  std::array<std::int16_t, kLettersEnd> bytes{};
  bytes.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte)
    bytes[kLetters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}();

}  // namespace

char32_t letter_of_byte(unsigned char byte) { return kLetters[byte]; }

std::optional<std::string> bytes_of_letters(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::CodePoint letter = utf8::decode(text, at);
    if (!letter.valid || letter.value >= kLettersEnd || kBytes[letter.value] < 0)
      return std::nullopt;
    bytes += static_cast<char>(kBytes[letter.value]);
    at += static_cast<std::size_t>(letter.length);
  }
  return bytes;
}

}  // namespace efimd::engine
