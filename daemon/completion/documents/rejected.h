#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/documents/event.h"
#include "daemon/text/document.h"

namespace efimd::completion {

/// Suggestions of one document that the user rejected, so that they are not shown again at their
/// places.
///
/// LSP does not report a dismissal, and editors ask again by themselves. So the user's text counts,
/// and efim/didDismiss of editors that send it. After it was shown, a suggestion is rejected if
///
///   - the user writes other text at its begin,
///   - the user dismisses it before writing anything else (its rest is rejected then), or
///   - the user accepts it whole, but at a later request the cursor is back at its begin and the
///     text is gone.
///
/// Writing text that agrees with it rejects nothing; nor does moving away or deleting text before
/// it. Its place is its begin, which moves with edits before it, with the same text before it on
/// its line. Two suggestions are the same if their first lines with text are the same. They also
/// are if one begins with the other and is at most twice as long.
///
/// Limits: the last kTurnedDownMax.
class Rejections {
 public:
  static constexpr std::size_t kTurnedDownMax = 8;

  /// Call it for each request before its answer. `last` is the request before, with the suggestion
  /// that it showed.
  void judge(const LastRequest& last, const text::Snapshot& snapshot, std::size_t cursor);
  /// The user dismissed what `last` showed while the text was that of `snapshot`. Ignored if the
  /// text has changed since, because the suggestion is no longer on the screen.
  void dismiss(const LastRequest& last, const text::Snapshot& snapshot);
  /// Whether `text`, or any text if there is none, was rejected at the byte `begin` of `snapshot`.
  bool turned_down(const text::Snapshot& snapshot, std::size_t begin,
                   std::optional<std::string_view> text = {}) const;

 private:
  struct Suggestion {
    Shown shown;
    std::string line_before;
  };
  void follow(const LastRequest& last, const text::Snapshot& snapshot);
  void turn_down(Suggestion suggestion);

  std::vector<Suggestion> turned_down_;  ///< the last one last
  std::optional<Suggestion> taken_;
};

}  // namespace efimd::completion
