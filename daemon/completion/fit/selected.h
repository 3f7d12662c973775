#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "daemon/completion/fit/cursor_context.h"
#include "daemon/completion/request.h"

namespace efimd::completion {

/// A longer text is no name that a completion list offers.
inline constexpr std::size_t kSelectedBytesMax = 1024;

/// Whether a completion can go on from `selected`: one line's text, in place of a part of the
/// cursor's line. The cursor is in that part or at its end.
bool can_go_on_from(const Selected& selected, const text::Snapshot& snapshot, std::size_t cursor);

/// The text that must replace the last `typed_bytes` before the cursor, so that the selected text
/// is in its place. The model has to spell it first. Nullopt where more would have to be taken
/// back.
std::optional<std::string> spelled_for(const Selected& selected, const text::Snapshot& snapshot,
                                       std::size_t cursor, std::size_t typed_bytes);

/// Makes `place` the one after the selected text, as if it stood there already.
void go_on_from(CursorContext& place, const Selected& selected);

}  // namespace efimd::completion
