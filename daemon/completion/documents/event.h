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
  std::size_t begin = 0;    ///< where it was to be inserted
  std::string source = {};  ///< Receipt::source
};

/// What classification must know of a document's last request.
struct LastRequest {
  std::uint64_t serial = 0;
  std::size_t cursor = 0;
  std::optional<Shown> shown;  ///< offsets are still good: see forget_moved()
};

/// Whether text[shown->begin, cursor) is not empty and says what the suggestion does, as far as both
/// go.
bool agrees(const std::optional<Shown>& shown, std::string_view text, std::size_t cursor);

/// Names what lies between the last request for this document and this one. The first that holds:
///
///   open     there was no request for this document before
///   switch   the session's last request was for another document
///   repeat   the same text and cursor          jump     the same text, another cursor
///   newline  a line break and blanks were inserted at the cursor (a break behind it, too: "{|}")
///   accept   more than one character was inserted at the cursor, and the text since the shown
///            suggestion's begin agrees with the suggestion: in whole, in part, or it and more
///   type     at most kTypedBytesMax were inserted at the cursor, within a line; closers behind the
///            cursor (auto-closed) count as typed; so does replacing the word that ends there
///   delete   bytes were only removed, at the cursor
///   edit     anything else, and whenever the snapshot no longer remembers
///
/// Several edits since then count by their sum.
Event classify(const LastRequest* last, bool same_document, const text::Snapshot& snapshot,
               std::size_t cursor);

/// More than a long identifier in one go was pasted, not typed.
inline constexpr std::size_t kTypedBytesMax = 48;

/// Drops `last.shown` when an edit since then stands in front of it, so that its begin moved.
void forget_moved(LastRequest& last, const text::Snapshot& snapshot);

}  // namespace efimd::completion
