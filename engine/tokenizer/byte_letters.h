#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace efimd::engine {

/// GPT-2's alphabet for bytes, in which byte-level vocabularies are written: bytes that print in
/// Latin-1 stand for themselves, the others, in order, for U+0100 and up (a space is "Ġ").
char32_t letter_of_byte(unsigned char byte);

/// The bytes that `text` spells in that alphabet; nullopt when it has other letters.
std::optional<std::string> bytes_of_letters(std::string_view text);

}  // namespace efimd::engine
