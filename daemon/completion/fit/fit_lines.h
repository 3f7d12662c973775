#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/fit/cursor_context.h"

// The steps of fit() that look at whole lines.
namespace efimd::completion {

/// F-1.
std::string readable(std::string_view generated);

/// F-3.
std::string with_indentation_of(std::string_view text, const CursorContext& place);

/// The text around the cursor of which a habit is read, 64 KiB at most: a file may have 64 MiB.
std::string_view text_around(const CursorContext& place);

/// F-2: whether `text`, on a line of blanks, is indented deeper though the line above opens nothing.
bool indents_more(std::string_view text, const CursorContext& place);

/// F-3.
std::string without_semicolons(std::string text, const CursorContext& place);

/// F-4: whether the cursor's line would be the one above it again. `text` covers `replaced` bytes of
/// the line's rest.
bool repeats_line_above(std::string_view text, const CursorContext& place, std::size_t replaced);

/// F-4: `text` without the lines that follow the cursor's line already.
std::string_view without_following_lines(std::string_view text, const CursorContext& place);

std::string_view trim_end(std::string_view text);  ///< blanks and line ends
bool is_blank(std::string_view text);              ///< blanks and line ends only, or empty
bool is_word(char c);                              ///< a byte of a word in any script
bool is_space(char c);                             ///< a blank or a tab
bool is_quote(char c);
bool has_word(std::string_view text);
std::vector<std::string_view> split_lines(std::string_view text);  ///< at "\n"; one line at least

}  // namespace efimd::completion
