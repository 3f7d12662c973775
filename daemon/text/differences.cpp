#include "daemon/text/differences.h"

#include <algorithm>

namespace efimd::text {

Differences Differences::between(std::string_view older, std::string_view newer) {
  Differences differences;
  if (older == newer) return differences;
  const auto begin =
      static_cast<std::size_t>(std::ranges::mismatch(older, newer).in1 - older.begin());
  older.remove_prefix(begin);
  newer.remove_prefix(begin);
  const auto same = static_cast<std::size_t>(
      std::mismatch(older.rbegin(), older.rend(), newer.rbegin(), newer.rend()).first -
      older.rbegin());
  differences.spans_ = {{begin, begin + older.size() - same, begin, begin + newer.size() - same}};
  return differences;
}

void Differences::add(const Edit& edit) {
  const std::size_t edit_end = edit.begin + edit.removed;
  const auto first = std::ranges::find_if(
      spans_, [&](const Span& span) { return span.end + kApartMin > edit.begin; });
  const auto last = std::find_if(
      first, spans_.end(), [&](const Span& span) { return span.begin >= edit_end + kApartMin; });
  // Before any span the texts are the same; behind one they differ by what it moved.
  Span joined{edit.begin, edit_end, edit.begin, edit_end};
  if (first != spans_.begin()) {
    const Span& before = *std::prev(first);
    joined.old_begin = edit.begin - before.end + before.old_end;
    joined.old_end = edit_end - before.end + before.old_end;
  }
  if (first != last) {
    const Span& end = *std::prev(last);
    joined.begin = std::min(edit.begin, first->begin);
    joined.end = std::max(edit_end, end.end);
    joined.old_begin = first->old_begin - (first->begin - joined.begin);
    joined.old_end = end.old_end + (joined.end - end.end);
  }
  joined.end += edit.inserted - edit.removed;
  for (auto span = last; span != spans_.end(); ++span) {
    span->begin += edit.inserted - edit.removed;
    span->end += edit.inserted - edit.removed;
  }
  spans_.insert(spans_.erase(first, last), joined);
  if (spans_.size() > kSpansMax) join_closest();
}

void Differences::join_closest() {
  auto closest = spans_.begin();
  for (auto span = spans_.begin(); std::next(span) != spans_.end(); ++span)
    if (std::next(span)->begin - span->end < std::next(closest)->begin - closest->end)
      closest = span;
  const auto next = std::next(closest);
  closest->old_end = next->old_end;
  closest->end = next->end;
  spans_.erase(next);
}

std::optional<std::size_t> Differences::moved(std::size_t place) const {
  std::size_t moved = place;
  for (const Span& span : spans_) {
    if (place <= span.old_begin) break;
    if (place < span.old_end) return std::nullopt;
    moved = place - span.old_end + span.end;
  }
  return moved;
}

}  // namespace efimd::text
