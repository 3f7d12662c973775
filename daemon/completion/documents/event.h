#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/completion/request.h"
#include "daemon/text/document.h"

namespace efimd::completion {

/// A suggestion as the user last saw it.
struct Shown {
  std::string text;
  std::size_t begin = 0;    ///< its place in the text
  std::string source = {};  ///< Receipt::source of the answer that showed it first
  double chance = 0;        ///< Receipt::confidence; 0: unknown
  bool is_judged = false;   ///< the user typed some of it
};

/// Whether `now` is `before`, or what is left of it once its beginning is typed: nothing new is shown.
bool is_left_of(const Shown& before, const Shown& now);

/// The facts of a document's last request that classification needs.
struct LastRequest {
  std::uint64_t serial = 0;
  std::size_t cursor = 0;
  std::optional<Shown> shown;  ///< offsets are still good: see forget_moved()
};

/// Whether text[shown->begin, cursor) is not empty and equals the suggestion as far as both reach.
bool agrees(const std::optional<Shown>& shown, std::string_view text, std::size_t cursor);

/// Names the change between the last request for this document and this one. The first that holds:
///
///   open     there was no request for this document before
///   switch   the session's last request was for another document
///   repeat   the same text and cursor          jump     the same text, another cursor
///   newline  a line break and blanks were inserted at the cursor (a break after it, too: "{|}")
///   accept   more than one character was inserted at the cursor, and the text since the shown
///            suggestion's begin agrees with the suggestion: all of it, a part, or more than it
///   type     at most kTypedBytesMax were inserted at the cursor, within a line; closers after the
///            cursor (auto-closed) count as typed; so does replacing the word that ends there
///   delete   bytes were only removed, at the cursor
///   edit     anything else, and whenever the snapshot no longer remembers
///
/// Several edits since then count by their sum.
Event classify(const LastRequest* last, bool same_document, const text::Snapshot& snapshot,
               std::size_t cursor);

/// More than a long identifier in one go was pasted, not typed.
inline constexpr std::size_t kTypedBytesMax = 48;

/// Drops `last.shown` if an edit since then lies before it, because its begin moved.
void forget_moved(LastRequest& last, const text::Snapshot& snapshot);

}  // namespace efimd::completion
