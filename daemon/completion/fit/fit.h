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

/// Shapes generated text for the place where it is to stand. In this order:
///
///   F-1  Text only: cut in front of the first control character or invalid byte (an incomplete
///        code point at the end is one); line ends become "\n".
///   F-2  Blanks: none at the end, where the line has nothing behind the cursor; none at the
///        beginning behind a blank in front of the cursor, and no single one behind an
///        indentation of whole levels (many a vocabulary's words begin with a blank).
///   F-3  Indentation of new lines is the buffer's: tabs or spaces. Where no line around the cursor
///        is indented, it is the model's.
///   F-4  Lines that stand behind the cursor's line already are not repeated, exactly or nearly
///        (near.h): cut where the rest of the completion says the next lines that are not blank.
///        Leading blanks may differ when two lines or more agree.
///   F-5  The rest of the cursor's line: its tail (closers) is covered by the item as far as the
///        completion closes the same brackets, and the completion is cut in front of a bracket that
///        the tail would leave unbalanced. More than a tail is not repeated, and nothing of
///        the completion comes below it.
///   F-6  What is left empty, blank, or equal to what it would replace is silent.
///   F-7  Brackets and strings are no worse off than before (balance.h): cut in front of the first
///        that would be.
Fitted fit(std::string_view generated, const CursorContext& place);

}  // namespace efimd::completion
