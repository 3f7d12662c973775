#include "daemon/completion/fit/cursor_context.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/utf8.h"
#include "daemon/completion/fit/fit_lines.h"
#include "daemon/syntax/continuation.h"
#include "daemon/text/indentation.h"

namespace efimd::completion {

namespace {

/// What the text up to the cursor's line leaves open.
void read_surroundings(CursorContext& place, std::size_t line) {
  const text::LineIndex& lines = place.snapshot.lines();
  const std::size_t end = lines.start(line);
  std::size_t begin = 0;
  if (end > kSurroundingsBytesMax) {
    begin = lines.start(std::min(lines.line_of(end - kSurroundingsBytesMax) + 1, line));
    place.open_is_all = false;
  }
  const std::string_view text = place.snapshot.bytes();
  Scan read = scan(text.substr(begin, end - begin), place.language);
  for (const Bracket& bracket : read.brackets) {
    if (is_opener(bracket.c)) {
      const std::size_t at = lines.line_of(begin + bracket.at);
      place.open.push_back({bracket.c, text::leading_blanks(place.snapshot.line(at))});
    } else {
      close_last(place.open, bracket.c);
    }
  }
  place.state = std::move(read.end);
  place.state.begin = 0;
}

}  // namespace

std::optional<OpenBracket> close_last(std::vector<OpenBracket>& open, char closer) {
  constexpr std::ptrdiff_t kLookedAtMax = 64;
  const auto end = open.rbegin() + std::min(std::ssize(open), kLookedAtMax);
  const auto found = std::find_if(open.rbegin(), end, [closer](const OpenBracket& each) {
    return closer_of(each.c) == closer || (each.c == '{' && closer != '}');
  });
  if (found == end || closer_of(found->c) != closer) return std::nullopt;
  const OpenBracket closed = *found;
  open.erase(std::prev(found.base()), open.end());
  return closed;
}

CursorContext context_at(const text::Snapshot& snapshot, const Language& language,
                         std::size_t cursor, std::size_t tail_end) {
  const std::string_view bytes = snapshot.bytes();
  const text::LineIndex& lines = snapshot.lines();
  std::size_t line = lines.line_of(cursor);
  const std::size_t line_end = std::max(lines.content_end(bytes, line), cursor);

  CursorContext place{.snapshot = snapshot, .language = language, .cursor = cursor};
  place.tail_end = std::clamp(tail_end, cursor, line_end);
  const std::size_t line_begin = lines.start(line);
  const std::size_t seen_from =
      cursor - line_begin > kLineBytesMax ? utf8::floor(bytes, cursor - kLineBytesMax) : line_begin;
  place.line_before = std::string(bytes.substr(seen_from, cursor - seen_from));
  place.rest = bytes.substr(cursor, line_end - cursor);
  place.line_is_short = seen_from == line_begin && place.rest.size() <= kLineBytesMax;
  place.rest_is_tail = place.tail_end == line_end || is_blank(place.rest);
  if (seen_from == line_begin) {
    read_surroundings(place, line);
  } else {
    place.open_is_all = false;
    place.state.previous = bytes[seen_from - 1];
  }
  while (++line < lines.line_count() && place.next_line.empty())
    if (!is_blank(snapshot.line(line))) place.next_line = snapshot.line(line);
  return place;
}

std::string_view window_above(const CursorContext& place) {
  if (place.grammar == syntax::Grammar::kNone || !place.line_is_short) return {};
  const text::LineIndex& lines = place.snapshot.lines();
  const std::string_view above =
      place.snapshot.bytes().substr(0, lines.start(lines.line_of(place.cursor)));
  return syntax::window_before(above);
}

}  // namespace efimd::completion
