#include "daemon/completion/fit/selected.h"

#include <algorithm>

#include "daemon/completion/fit/fit_lines.h"

namespace efimd::completion {

bool can_go_on_from(const Selected& selected, const text::Snapshot& snapshot, std::size_t cursor) {
  const text::LineIndex& lines = snapshot.lines();
  return selected.begin <= cursor && cursor <= selected.end &&
         selected.end <= snapshot.bytes().size() &&
         lines.line_of(selected.begin) == lines.line_of(selected.end) && !selected.text.empty() &&
         selected.text.size() <= kSelectedBytesMax &&
         selected.text.find_first_of("\r\n") == std::string::npos;
}

std::optional<std::string> spelled_for(const Selected& selected, const text::Snapshot& snapshot,
                                       std::size_t cursor, std::size_t typed_bytes) {
  const std::string_view bytes = snapshot.bytes();
  const std::string_view typed = bytes.substr(selected.begin, cursor - selected.begin);
  const std::size_t from = cursor - std::min(typed_bytes, cursor);
  if (from <= selected.begin)
    return std::string(bytes.substr(from, selected.begin - from)) + selected.text;
  if (!selected.text.starts_with(typed)) return std::nullopt;
  return std::string(bytes.substr(from, cursor - from)) + selected.text.substr(typed.size());
}

void go_on_from(CursorContext& place, const Selected& selected) {
  const std::string_view bytes = place.snapshot.bytes();
  const std::size_t line_end = place.cursor + place.rest.size();
  const std::size_t replaced = place.cursor - selected.begin;
  place.line_before.resize(place.line_before.size() - std::min(replaced, place.line_before.size()));
  place.line_before += selected.text;
  place.cursor = selected.end;
  place.rest = bytes.substr(selected.end, line_end - selected.end);
  place.tail_end = std::max(place.tail_end, selected.end);
  place.rest_is_tail = place.tail_end == line_end || is_blank(place.rest);
}

}  // namespace efimd::completion
