#pragma once

#include <cstddef>
#include <string_view>

#include "daemon/completion/fit/cursor_context.h"

namespace efimd::completion {

/// How much of `text` may stand at `place`, in front of the rest of the line from `replaced` bytes
/// on, so that no bracket or string is worse off than without it. An offence is
///
///   - a bracket that opens and is never closed, unless it ends its line and the text goes on
///     below (a block that was cut short), or the lines behind the cursor close it;
///   - a bracket that closes nothing, or what the lines behind the cursor close already;
///   - a string that its line does not close, or that turns the rest of the line inside out.
///
/// A line closes a bracket when it is the first behind the cursor with no more indentation than the
/// bracket's line, has just as much, and begins with its partner. Prose has no offences.
///
/// All of the text, or the bytes in front of its first offence: of the whole line, where that is a
/// bracket that ends a line of the text's own.
std::size_t balanced_part(std::string_view text, const CursorContext& place, std::size_t replaced);

}  // namespace efimd::completion
