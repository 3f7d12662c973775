#pragma once

#include <cstddef>
#include <string>

#include "daemon/completion/fit/cursor_context.h"

namespace efimd::completion {

/// A text and how much of the tail it covers.
struct TailMatched {
  std::string text;
  std::size_t consumed = 0;  ///< bytes of the tail that the text says itself
};

/// Walks the brackets with which `text` closes what it did not open, in step with those of the tail
/// behind the cursor: what both have is covered by the text, and the text is cut in front of a
/// bracket that would be one too many. A string that the cursor stands in and the tail closes ends
/// where the text ends it. Blanks of the tail in front of what is covered stay: VS Code shows only
/// what contains the text that it replaces.
TailMatched match_tail(std::string text, const CursorContext& place);

}  // namespace efimd::completion
