#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "daemon/syntax/grammar.h"

// What a grammar says of text that goes on at a cursor. A statement that ends at the cursor is not
// whole, so a plain parse would call it an error.
namespace efimd::syntax {

/// Bytes of the text before that are read: more takes longer and tells hardly more.
inline constexpr std::size_t kWindowBytesMax = std::size_t{8} << 10;
/// Bytes before the text's begin that must be free of errors: near one, a parser guesses.
inline constexpr std::size_t kSoundBytes = 2000;
/// Of a longer text, what precedes the cursor included, nothing is known.
inline constexpr std::size_t kReadBytesMax = 2 * kWindowBytesMax;
/// Microseconds of a processor that one answer may take. Most take 500 to 1,000.
inline constexpr std::uint64_t kContinuationTimeUs = 4'000;

/// The end of `before` that is worth reading. If it is not all, it begins where a declaration may:
/// with a word on a line that is indented less than others. Empty if there is no such line.
std::string_view window_before(std::string_view before);

/// How many bytes of `text` may follow the window: those before the first token that no program of the
/// language has there. What a text leaves open at its end is no fault, as a later token may close it.
///
/// nullopt: nothing is known. There is no grammar, the time is over, a limit above is passed, or an
/// error stands just before the text.
std::optional<std::size_t> accepted_bytes(Grammar grammar, std::string_view window,
                                          std::string_view text,
                                          std::uint64_t time_us = kContinuationTimeUs);

/// Where the statement or declaration begins whose block the text's last token opens ("{" or ":").
/// `closers` close what the text leaves open, innermost first. nullopt if nothing is known.
std::optional<std::size_t> block_begin(Grammar grammar, std::string_view text,
                                       std::string_view closers,
                                       std::uint64_t time_us = kContinuationTimeUs);

}  // namespace efimd::syntax
