#include "daemon/completion/fit/fit.h"

#include <algorithm>
#include <utility>

#include "daemon/completion/fit/balance.h"
#include "daemon/completion/fit/fit_lines.h"
#include "daemon/completion/fit/parses.h"
#include "daemon/completion/fit/repeats.h"
#include "daemon/completion/fit/tail_match.h"
#include "daemon/completion/silence.h"
#include "daemon/text/indentation.h"

namespace efimd::completion {

namespace {

/// Longer ends of a line are not compared in the near sense.
constexpr std::size_t kRestBytesMax = 256;

/// F-5 for a rest of the line that is more than a tail: what the completion's first line repeats of
/// it at its end is cut. A repetition begins at a word's border and is the whole rest, exactly or
/// but for its form, or at least 3 bytes of it with a word.
std::string_view without_rest(std::string_view line, const CursorContext& place) {
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

/// F-5 for a rest of the line that begins with a word: whether the completion's first line begins with
/// the same word and does not go before it. It does not if the cursor is in the word, or if its end
/// would make one word with it.
bool types_word_again(std::string_view line, const CursorContext& place) {
  constexpr std::size_t kTypedAgainMin = 2;
  const auto end = std::ranges::find_if_not(place.rest, is_word);
  const std::string_view word =
      place.rest.substr(0, static_cast<std::size_t>(end - place.rest.begin()));
  if (word.size() < kTypedAgainMin || !line.starts_with(word)) return false;
  if (line.size() > word.size() && is_word(line[word.size()])) return false;
  return is_word(line.back()) || (!place.line_before.empty() && is_word(place.line_before.back()));
}

/// Whether `blanks` are whole levels of what the text around the cursor indents by.
bool is_whole_levels(std::string_view blanks, const CursorContext& place) {
  const text::Indentation unit = text::indentation_of(place.snapshot.bytes(), place.cursor);
  if (unit.tabs || blanks.back() == '\t') return blanks.back() == '\t';
  return unit.spaces > 1 && blanks.size() % static_cast<std::size_t>(unit.spaces) == 0;
}

/// F-2, the beginning.
std::string_view trim_begin(std::string_view text, const CursorContext& place) {
  const std::string_view before = place.line_before;
  const std::size_t first = text.find_first_not_of(" \t");
  if (before.empty() || first == std::string_view::npos) return text;
  if (!is_blank(before)) return is_space(before.back()) ? text.substr(first) : text;
  const bool stray = first == 1 && text[0] == ' ' && text[1] != '*' && text[1] != '\n';
  return stray && is_whole_levels(before, place) ? text.substr(first) : text;
}

/// F-2 to F-4, and F-5 but for the tail.
std::string shaped(std::string text, const CursorContext& place) {
  text = trim_begin(text, place);
  if (place.rest_is_tail || is_space(place.rest.front())) text.resize(trim_end(text).size());
  text = with_indentation_of(text, place);
  if (const std::string_view kept = without_following_lines(text, place); kept.size() < text.size())
    text.resize(trim_end(kept).size());
  if (place.rest_is_tail) return text;
  text.resize(without_rest(split_lines(text).front(), place).size());
  if (types_word_again(text, place)) text.clear();
  return text;
}

}  // namespace

Fitted fit(std::string_view generated, const CursorContext& place) {
  const auto silent = [&](std::string_view reason) { return Fitted{{}, place.cursor, reason}; };
  const std::string text = readable(generated);
  if (text.empty()) return silent(generated.empty() ? silence::kNothing : silence::kUnreadable);
  if (is_blank(text)) return silent(silence::kOnlyBlanks);
  TailMatched shown{shaped(text, place)};
  if (is_blank(shown.text)) return silent(silence::kRepeats);
  // What is cut for a bracket covers less of the tail, which may leave another one over.
  for (std::size_t size = shown.text.size() + 1; shown.text.size() < size;) {
    shown = match_tail(std::move(shown.text), place);
    size = shown.text.size();
    if (is_blank(shown.text) || shown.text == place.rest.substr(0, shown.consumed))
      return silent(silence::kRepeats);
    const std::string_view kept =
        std::string_view(shown.text).substr(0, balanced_part(shown.text, place, shown.consumed));
    if (kept.size() < size) shown.text.resize(trim_end(kept).size());
    if (is_blank(shown.text)) return silent(silence::kUnbalanced);
    if (shown.text.size() < size) continue;
    shown.text.resize(parsing_part(shown.text, place, shown.consumed));
    if (shown.text.size() < size) shown.text.resize(trim_end(shown.text).size());
    if (is_blank(shown.text)) return silent(silence::kParsesWorse);
  }
  return {std::move(shown.text), place.cursor + shown.consumed, {}};
}

}  // namespace efimd::completion
