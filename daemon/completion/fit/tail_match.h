#pragma once

#include <cstddef>
#include <string>

#include "daemon/completion/fit/cursor_context.h"

namespace efimd::completion {

/// A text, and how much of the tail it covers.
struct TailMatched {
  std::string text;
  std::size_t consumed = 0;  ///< bytes of the tail that the text contains
};

/// Compares the brackets that `text` closes without opening them with those of the tail after the
/// cursor. The text covers those that both have, and is cut before a bracket that would be one too
/// many. If the cursor stands in a string that the tail closes, perhaps behind brackets
/// ("#{name}"), the string ends where the text ends it. Blanks of the tail before what is covered
/// stay, because VS Code shows only items that contain the text that they replace.
///
/// A ";" or ":" of the tail is covered where a line of the text ends with it, as it would otherwise
/// come to stand behind the lines below. If the tail goes on behind it, the text is cut there. A
/// ":" with which both go on, at their beginning or behind what is covered, is covered, too.
TailMatched match_tail(std::string text, const CursorContext& place);

}  // namespace efimd::completion
