#pragma once

#include <string_view>

#include "daemon/completion/fit/cursor_context.h"

namespace efimd::completion {

/// F-5 for a rest of the line that is more than a tail: how much of `line`, the completion's first
/// line, may stand before it.
///
///   - What it repeats of the rest at its end is cut. A repetition begins at a word's border and is the
///     whole rest, exactly or but for its form, or at least 3 bytes of it with a word.
///   - Nothing is left if it begins with the rest's first word and does not go before it. It does not
///     if the cursor is in the word, or if its end would make one word with it.
///   - In a word, the word's second half is not typed again: "r^turn x" takes "e" of "eturn y;".
///   - Words that grow together make one that the text around has, or are parts of a name
///     ("get^Value"), or fill a word ("pa^e"). Otherwise what both have is there once ("f(^l)" takes "ur"
///     of "url"), or nothing is left, if they have nothing in common. Numbers, and scripts without
///     blanks, are left alone.
///   - No ";" of code stands before a word without a blank, but in the head of a loop.
std::string_view before_rest(std::string_view line, const CursorContext& place);

}  // namespace efimd::completion
