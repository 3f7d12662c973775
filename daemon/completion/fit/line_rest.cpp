#include "daemon/completion/fit/line_rest.h"

#include <algorithm>
#include <string>

#include "daemon/completion/fit/fit_lines.h"
#include "daemon/completion/fit/repeats.h"

namespace efimd::completion {

namespace {

/// Longer ends of a line are not compared in the near sense.
constexpr std::size_t kRestBytesMax = 256;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view first_word_of(std::string_view text) {
  return text.substr(
      0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_word) - text.begin()));
}

std::string_view last_word_of(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return text.substr(begin);
}

bool in_word(const CursorContext& place) {
  return !place.line_before.empty() && is_word(place.line_before.back());
}

std::string_view without_repetition(std::string_view line, const CursorContext& place) {
  constexpr std::size_t kRepeatedBytesMin = 3;
  const std::string_view rest = trim_end(place.rest);
  const bool may_be_near = rest.size() <= kRestBytesMax && has_word(rest);
  const std::size_t longest =
      std::min(line.size(), may_be_near ? 2 * rest.size() + 1 : rest.size());
  for (std::size_t size = longest; size > 0; --size) {
    const std::size_t at = line.size() - size;
    const std::string_view repeated = line.substr(at);
    if (at > 0 && is_word(line[at - 1]) && is_word(line[at])) continue;
    if (may_be_near && same_but_for_form(repeated, rest, place.language)) return line.substr(0, at);
    if (!rest.starts_with(repeated)) continue;
    if (size == rest.size() || (size >= kRepeatedBytesMin && has_word(repeated)))
      return line.substr(0, at);
  }
  return line;
}

bool types_word_again(std::string_view line, const CursorContext& place) {
  constexpr std::size_t kTypedAgainMin = 2;
  const std::string_view word = first_word_of(place.rest);
  if (word.size() < kTypedAgainMin || !line.starts_with(word)) return false;
  if (line.size() > word.size() && is_word(line[word.size()])) return false;
  return is_word(line.back()) || in_word(place);
}

/// Whether the text has `word`, as a whole one.
bool is_known(std::string_view word, std::string_view text) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end])))
      return true;
  }
  return false;
}

/// The line without a ";" of code at its end. Its place in the head of a loop is before a word.
std::string_view without_semicolon(std::string_view line, const CursorContext& place) {
  if (!line.ends_with(';') || place.language.prose) return line;
  const std::string whole = place.line_before + std::string(line);
  if (is_known("for", whole)) return line;
  if (scan(whole, place.language, place.state).end.in != Lexical::In::kCode) return line;
  return line.substr(0, line.size() - 1);
}

/// Letters of other scripts may need no blanks between words, and digits make no word.
bool is_of_word(char c) {
  return is_word(c) && static_cast<unsigned char>(c) < 0x80 && !is_digit(c);
}

/// Whether a word is what a name may go on with: "Value", "_t".
bool is_part_of_name(std::string_view word) {
  return word[0] == '_' || (word[0] >= 'A' && word[0] <= 'Z');
}

/// The line, whose last word would grow together with the rest's first one.
std::string_view joined(std::string_view line, const CursorContext& place) {
  constexpr std::size_t kSharedByNamesMin = 3;
  const std::string_view behind = first_word_of(place.rest);
  if (!is_of_word(line.back()) || !is_of_word(behind[0])) return line;
  const std::string_view last = last_word_of(line);
  const bool only_word = last.size() == line.size();
  std::string whole(last);
  if (only_word) whole.insert(0, last_word_of(place.line_before));
  if (is_known(whole + std::string(behind), text_around(place))) return line;
  const bool is_name = is_part_of_name(behind);
  for (std::size_t size = std::min(last.size(), behind.size()); size > 0; --size) {
    if (is_name && size < kSharedByNamesMin && size < behind.size()) break;
    if (last.ends_with(behind.substr(0, size))) return line.substr(0, line.size() - size);
  }
  return is_name || (only_word && in_word(place)) ? line : std::string_view();
}

}  // namespace

std::string_view before_rest(std::string_view line, const CursorContext& place) {
  line = without_repetition(line, place);
  if (line.empty() || types_word_again(line, place)) return {};
  const std::string_view behind = first_word_of(place.rest);
  if (behind.empty()) return line;
  const std::string_view first = first_word_of(line);
  if (in_word(place) && first.size() > behind.size() && first.ends_with(behind))
    return first.substr(0, first.size() - behind.size());
  line = without_semicolon(line, place);
  return !line.empty() && is_word(line.back()) ? joined(line, place) : line;
}

}  // namespace efimd::completion
