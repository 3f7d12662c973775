#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "daemon/completion/fit/cursor_context.h"

namespace efimd::completion {

struct Fitted {
  std::string text;             ///< empty: silent
  std::size_t replace_end = 0;  ///< at least the cursor
  std::string_view silence;     ///< why it is silent
};

/// Makes generated text fit its place. In this order:
///
///   F-1  Text only. It is cut before the first control character or invalid byte (an incomplete
///        code point at the end is one). Line ends become "\n".
///   F-2  Blanks: none at the end if nothing follows the cursor on its line; none at the beginning
///        after a blank. After an indentation of whole levels, no single one either, because in
///        many vocabularies words begin with a blank. Text that is indented deeper than the editor
///        did, though the line above opens nothing, is not shown.
///   F-3  New lines are indented as the buffer is, with tabs or spaces. If no line around the
///        cursor is indented, or many are either way, the model's indentation stays. Where JavaScript
///        ends its statements with their lines, so do new lines, without ";".
///   F-4  Lines that follow the cursor's line already are not repeated, exactly or nearly
///        (repeats.h). The completion is cut if its rest equals the next lines that are not blank.
///        Leading blanks may differ if two lines or more agree. A single line that the next one goes
///        on, the next one behind the cursor's line, and the line just above are not shown either.
///   F-5  The rest of the cursor's line. If it is a tail (closers), the item covers it as far as
///        the completion closes the same brackets and has the same signs in the same place
///        (tail_match.h). The completion is cut before a bracket that the tail would leave
///        unbalanced. A rest that is more than a tail is not repeated, its first word does not grow
///        together with another (line_rest.h), and no line of the completion comes below it.
///   F-6  A text that is now empty, blank, or equal to what it would replace is not shown.
///   F-7  Brackets and strings stay at least as balanced as they are (balance.h): cut before the
///        first that would not.
///   F-8  The statement parses no worse than without it, if a grammar is there (parses.h): cut before
///        the first token that does not belong there.
Fitted fit(std::string_view generated, const CursorContext& place);

}  // namespace efimd::completion
