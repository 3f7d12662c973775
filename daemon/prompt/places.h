#pragma once

#include <cstddef>
#include <string_view>

#include "daemon/text/document.h"
#include "engine/tokenizer/tokenizer.h"

// The places at which a prompt may cut its text.
namespace efimd::prompt {

/// A token rarely covers more bytes than this: how much text to look at for a number of tokens.
inline constexpr std::size_t kBytesPerTokenGuess = 8;
/// A line longer than this is cut near the cursor instead of at its start.
inline constexpr std::size_t kCutDistanceMax = 512;

/// where before ends.
std::size_t choose_cut(std::string_view text, std::size_t cursor,
                       const engine::Tokenizer& tokenizer);

/// where after begins.
std::size_t choose_resume(const text::Snapshot& snapshot, std::size_t cursor);

/// The first line start at or after `byte`, if there is one up to `limit`; else a code point
/// border.
std::size_t line_start_from(const text::Snapshot& snapshot, std::size_t byte, std::size_t limit);

/// The text that may stand between the cursor and after.
bool only_closers_and_blanks(std::string_view text);

}  // namespace efimd::prompt
