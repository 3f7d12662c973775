#pragma once

#include "daemon/prompt/planner.h"
#include "daemon/text/document.h"

namespace efimd::prompt {

/// An anchor carried over edits to a later version.
struct Followed {
  /// kKept: all offsets are of the new version. kEditOutside, kHistoryLost: only what
  /// `window_begin` says is left.
  AnchorChange change = AnchorChange::kKept;
  std::size_t cut = 0;
  std::size_t resume = 0;
  std::size_t window_end = 0;
  /// Where the window begins in the new version; nullopt when that place was edited away.
  std::optional<std::size_t> window_begin;
};

Followed follow(const Anchor& anchor, const text::Snapshot& snapshot);

}  // namespace efimd::prompt
