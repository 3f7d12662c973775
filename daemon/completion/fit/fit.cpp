#include "daemon/completion/fit/fit.h"

#include <algorithm>
#include <utility>

#include "daemon/completion/fit/balance.h"
#include "daemon/completion/fit/fit_lines.h"
#include "daemon/completion/fit/line_rest.h"
#include "daemon/completion/fit/parses.h"
#include "daemon/completion/fit/repeats.h"
#include "daemon/completion/fit/tail_match.h"
#include "daemon/completion/silence.h"
#include "daemon/text/indentation.h"

namespace efimd::completion {

namespace {

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
  text = without_semicolons(with_indentation_of(text, place), place);
  if (const std::string_view kept = without_following_lines(text, place); kept.size() < text.size())
    text.resize(trim_end(kept).size());
  if (place.rest_is_tail) return text;
  text.resize(before_rest(split_lines(text).front(), place).size());
  return text;
}

}  // namespace

Fitted fit(std::string_view generated, const CursorContext& place) {
  const auto silent = [&](std::string_view reason) { return Fitted{{}, place.cursor, reason}; };
  const std::string text = readable(generated);
  if (text.empty()) return silent(generated.empty() ? silence::kNothing : silence::kUnreadable);
  if (is_blank(text)) return silent(silence::kOnlyBlanks);
  if (indents_more(trim_begin(text, place), place)) return silent(silence::kIndented);
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
  if (repeats_line_above(shown.text, place, shown.consumed)) return silent(silence::kRepeatsAbove);
  return {std::move(shown.text), place.cursor + shown.consumed, {}};
}

}  // namespace efimd::completion
