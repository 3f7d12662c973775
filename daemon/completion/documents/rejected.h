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

/// Suggestions of one document that a person turned down, so that they are not shown again where
/// they were.
///
/// LSP does not tell of a dismissal, and editors ask again by themselves; so what counts is what was
/// written, and efim/didDismiss of editors that send it. A suggestion is turned down when, after it
/// was shown,
///
///   - other text than it says was written at its begin,
///   - it was dismissed before anything else was written: what was left of it then, or
///   - it was taken whole, and at a later request the cursor is back at its begin and it is gone.
///
/// Text that agrees with it turns nothing down, nor does moving away or deleting what stands in
/// front. The place is its begin, which moves with edits in front of it, with the same text in front
/// of it on its line. It is the same suggestion when the first line that has text is the same, or
/// one begins with the other and is at least half as long.
///
/// Limits: the last kTurnedDownMax.
class Rejections {
 public:
  static constexpr std::size_t kTurnedDownMax = 8;

  /// To be told of each request, before its answer: `last` is the request before, with what was
  /// shown then.
  void judge(const LastRequest& last, const text::Snapshot& snapshot, std::size_t cursor);
  /// The user dismissed what `last` showed, when the text was that of `snapshot`. What is no longer
  /// on the screen, because the text has changed since, is not dismissed.
  void dismiss(const LastRequest& last, const text::Snapshot& snapshot);
  /// Whether `text` was turned down for the byte `begin` of `snapshot`.
  bool turned_down(const text::Snapshot& snapshot, std::size_t begin, std::string_view text) const;

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
