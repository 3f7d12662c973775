#pragma once

#include <cstddef>
#include <string_view>

namespace efimd::recall {

/// Anchors are the positions of a text that its batch keeps in order. Not every byte is one, because
/// memory is at most three bytes for each byte of text:
///
///   - the end of each line's content;
///   - elsewhere, not in blanks before a blank, and not past the second letter of a word.
///
/// A cursor further inside a word is found through its word's second letter, after which the text
/// must go on as the user typed.
bool is_anchor(std::string_view text, std::size_t at);

/// The start of the search for matches of the text before a cursor.
struct Probe {
  std::size_t anchor = 0;
  /// The anchor ends a line above, and the cursor stands in the blanks of a new one. Line ends and
  /// indentation lie between them, and may differ.
  bool over_line_end = false;
};

/// The probe for a cursor in its line.
Probe probe_at(std::string_view text, std::size_t cursor);
/// The end of the last line with content above the line that `cursor` is in; over_line_end is false
/// if there is none.
Probe probe_above(std::string_view text, std::size_t cursor);

/// First byte of the line that `at` is in.
std::size_t line_begin(std::string_view text, std::size_t at);
/// One past the content of the line that `at` is in.
std::size_t line_end(std::string_view text, std::size_t at);

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
/// The only one in a document's text (text::document_text).
inline bool is_line_end(char c) { return c == '\n'; }
/// Letters, digits, "_", and every byte of a code point that is not ASCII.
constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace efimd::recall
