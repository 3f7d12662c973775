#include "daemon/prompt/follow.h"

namespace efimd::prompt {

namespace {

/// Moves the window's begin over one edit. Text inserted at the file's own begin belongs to the
/// window.
void move_window_begin(std::optional<std::size_t>& begin, const text::Edit& edit) {
  if (!begin || edit.begin >= *begin) return;
  if (edit.begin + edit.removed <= *begin) {
    *begin += edit.inserted - edit.removed;
  } else {
    begin.reset();
  }
}

/// Moves the hole and the window's end over one edit; false when the edit touches before or after.
/// Text inserted at either border of the hole is in the hole: that is where the user types.
bool move_hole(Followed& anchor, std::size_t window_begin, const text::Edit& edit) {
  const std::size_t edit_end = edit.begin + edit.removed;
  const std::size_t growth = edit.inserted - edit.removed;  // modulo 2^64, as the sums below
  if (edit.begin >= anchor.cut && edit_end <= anchor.resume) {
    anchor.resume += growth;
    anchor.window_end += growth;
    return true;
  }
  if (edit.begin >= anchor.window_end) return true;
  if (edit_end <= window_begin && edit.begin < window_begin) {
    anchor.cut += growth;
    anchor.resume += growth;
    anchor.window_end += growth;
    return true;
  }
  return false;
}

}  // namespace

Followed follow(const Anchor& anchor, const text::Snapshot& snapshot) {
  Followed followed{AnchorChange::kKept, anchor.cut, anchor.resume, anchor.window_end,
                    anchor.window_begin};
  const text::Snapshot::Since since = snapshot.edits_since(anchor.serial);
  if (!since.complete) {
    followed.change = AnchorChange::kHistoryLost;
    followed.window_begin.reset();
    return followed;
  }
  for (const text::Edit& edit : since.edits) {
    if (followed.change == AnchorChange::kKept &&
        !move_hole(followed, followed.window_begin.value_or(0), edit))
      followed.change = AnchorChange::kEditOutside;
    move_window_begin(followed.window_begin, edit);
  }
  return followed;
}

}  // namespace efimd::prompt
