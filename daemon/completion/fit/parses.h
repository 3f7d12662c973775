#pragma once

#include <cstddef>
#include <string_view>

#include "daemon/completion/fit/cursor_context.h"

namespace efimd::completion {

/// How much of `text` may stand at `place`, before the rest of the line from `replaced` bytes on, so
/// that the statement parses no worse than without it. An offence is
///
///   - a token of the text that no program of the language has after what stands before it;
///   - a text with which the rest of the line does not parse, though without the text it does. What
///     the text covers of it counts where the text is missing.
///
/// What the text leaves unfinished is none: a token at its end that may go on, a comment, a string of
/// several lines. Where the window begins inside the file, "}" is none, because balance.h knows more
/// of it. In C and C++, which their grammars know without a preprocessor, these are none either:
///
///   - "{" after "=", as in a default argument;
///   - a token of a line that begins with "#";
///   - one after a name in capitals in its statement, because that may be a macro.
///
/// Returns all of the text, or the bytes up to its last unit's end (unit_ends.h) before the first
/// offence; that may be nothing. All of it if the grammar knows nothing (syntax/continuation.h).
///
/// Takes a parse of the window, 4 at most; each ends after kContinuationTimeUs.
std::size_t parsing_part(std::string_view text, const CursorContext& place, std::size_t replaced);

}  // namespace efimd::completion
