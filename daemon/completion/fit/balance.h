#pragma once

#include <cstddef>
#include <string_view>

#include "daemon/completion/fit/cursor_context.h"

namespace efimd::completion {

/// How much of `text` may stand at `place`, before the rest of the line from `replaced` bytes on.
/// Every bracket and string stays at least as balanced as without it. An offence is
///
///   - a bracket that opens and is never closed; but it may end its line if the text goes on below
///     (a block that was cut short), if the lines after the cursor close it, or if there are none and
///     the line ends with "{" (a block that is being written at the file's end);
///   - a bracket that closes nothing, or one that the lines after the cursor close already, unless the
///     text opens another for them: "} else {";
///   - a bracket with which one in the rest of the line closes nothing any more;
///   - a string that its line does not close, or that swaps code and string in the rest of the
///     line;
///   - a comment that would hide the rest of the line.
///
/// A line after the cursor closes a bracket if it begins with the bracket's partner. It must be the
/// first with no more indentation than the line of the bracket's statement, but for labels and lines
/// of a preprocessor, and have just as much. Prose has no offences.
///
/// Returns all of the text, or the bytes before its first offence. If that is a bracket at the end
/// of one of the text's own lines, the whole line goes.
std::size_t balanced_part(std::string_view text, const CursorContext& place, std::size_t replaced);

}  // namespace efimd::completion
