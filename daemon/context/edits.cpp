#include "daemon/context/edits.h"

#include <algorithm>
#include <string_view>

namespace efimd::context {

namespace {

/// Edits that are no further apart are of one place: some two lines.
constexpr std::size_t kBytesBetween = 120;

/// Moves a place over one edit that does not touch it; false if it does.
bool move(EditedPlace& place, const text::Edit& edit) {
  if (edit.begin >= place.end + kBytesBetween) return true;
  if (edit.begin + edit.removed + kBytesBetween > place.begin) return false;
  place.begin += edit.inserted - edit.removed;  // modulo 2^64
  place.end += edit.inserted - edit.removed;
  return true;
}

/// The place of one edit, with all that it touches.
void add(std::vector<EditedPlace>& places, const text::Edit& edit, std::uint64_t order) {
  const std::size_t old_end = edit.begin + edit.removed;
  const std::size_t new_end = edit.begin + edit.inserted;
  EditedPlace added{edit.begin, new_end, order};
  std::erase_if(places, [&](EditedPlace& place) {
    if (move(place, edit)) return false;
    added.begin = std::min(added.begin, place.begin);
    if (place.end > old_end) added.end = std::max(added.end, new_end + (place.end - old_end));
    return true;
  });
  const auto later = std::ranges::find_if(
      places, [&](const EditedPlace& place) { return place.begin > added.begin; });
  places.insert(later, added);
  if (places.size() > kEditedPlacesMax)
    places.erase(std::ranges::min_element(places, {}, &EditedPlace::order));
}

}  // namespace

void RecentEdits::follow(const text::Snapshot& snapshot, std::uint64_t order) {
  const bool is_first = !serial_;
  const text::Snapshot::Since since = snapshot.edits_since(serial_.value_or(snapshot.serial()));
  serial_ = snapshot.serial();
  if (is_first) return;
  if (!since.complete) places_.clear();
  if (since.complete)
    for (const text::Edit& edit : since.edits) add(places_, edit, order);
}

std::string edited_lines(const EditedPlace& place, const text::Snapshot& snapshot) {
  const text::LineIndex& lines = snapshot.lines();
  const std::size_t first = lines.line_of(std::min(place.begin, snapshot.bytes().size()));
  std::string shown;
  for (std::size_t line = first; line < lines.line_count(); ++line) {
    const std::string_view content = snapshot.line(line);
    if ((line > first && lines.start(line) >= place.end) ||
        shown.size() + content.size() + 1 > kEditedBytesMax)
      break;
    shown += content;
    shown += '\n';
  }
  return shown.find_first_not_of(" \t\n") == std::string::npos ? std::string() : shown;
}

}  // namespace efimd::context
