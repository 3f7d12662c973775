#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/text/line_index.h"

namespace efimd::text {

/// If didChange would grow a document past it, completion is off for it until it is reopened.
inline constexpr std::size_t kDocumentBytesMax = std::size_t{64} << 20;
/// Edits that a snapshot remembers. A reader with an older version compares texts instead.
inline constexpr std::size_t kRecentEditsMax = 256;

/// Bytes that one revision may move to make room for its edits: a second or two. Past it, the
/// revision is refused like a document that grew too large. That is some 16,000 edits all over a 1
/// MB text, or 300 over a 50 MB one.
inline constexpr std::size_t kRevisionBytesMovedMax = std::size_t{8} << 30;

/// What a document of this text holds: valid UTF-8, with U+FFFD for what is not, and "\n" in place
/// of "\r\n" and "\r". Models see few "\r"; the bundled one has seen none, and would take another
/// token for it. Lines and the places in them are those of `text`.
std::string document_text(std::string text);

/// One replacement, in bytes of the text just before it.
struct Edit {
  std::uint64_t serial = 0;  ///< of the version that it produced
  std::size_t begin = 0;
  std::size_t removed = 0;
  std::size_t inserted = 0;
  bool operator==(const Edit&) const = default;
};

/// The smallest span that all of several edits lie in.
struct Change {
  bool any = false;
  std::size_t begin = 0;
  std::size_t removed = 0;  ///< bytes of the old text
  std::size_t end = 0;      ///< of the new text
};
/// `edits` follow each other, as Snapshot::edits_since() gives them.
Change sum_of(std::span<const Edit> edits);

/// One immutable version of a document: its document_text() with its lines and its last edits.
///
/// Thread: any (immutable, shared by pointer). The last who lets a large one go does not wait until it
/// is overwritten and freed.
class Snapshot {
 public:
  std::string_view bytes() const { return bytes_; }
  const LineIndex& lines() const { return lines_; }
  /// The content of `line` without its terminator; empty past the end.
  std::string_view line(std::size_t line) const { return lines_.content(bytes_, line); }
  /// Counts versions: grows by one with each edit. No two documents of this process share one.
  std::uint64_t serial() const { return serial_; }
  /// Oldest first, ending with the edit that made this snapshot; empty for an opened text.
  std::span<const Edit> recent_edits() const { return recent_edits_; }
  /// The edits that lead from version `serial` to this one. `complete` is false if they are no
  /// longer remembered, or if `serial` is later than this version.
  struct Since {
    bool complete = false;
    std::span<const Edit> edits;
  };
  Since edits_since(std::uint64_t serial) const;

 private:
  friend class Document;
  friend class Revision;
  Snapshot(std::string bytes, LineIndex lines, std::uint64_t serial,
           std::vector<Edit> recent_edits);
  std::string bytes_;
  LineIndex lines_;
  std::uint64_t serial_;
  std::vector<Edit> recent_edits_;
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

/// `base` with [begin, end) replaced by `text`, as Document::replace() would do it; for looking
/// ahead. The document itself may get another text under the same serial.
Result<SnapshotPtr> with_replaced(const SnapshotPtr& base, std::size_t begin, std::size_t end,
                                  std::string_view text);

/// Edits that become one new version together: the changes of one didChange. Each sees the text
/// that the one before left. The text is copied once; after that an edit moves only the bytes after
/// it.
///
/// Thread: its owner's.
class Revision {
 public:
  explicit Revision(SnapshotPtr base);

  std::string_view bytes() const { return edited() ? bytes_ : base_->bytes(); }
  const LineIndex& lines() const { return edited() ? lines_ : base_->lines(); }
  std::string_view line(std::size_t line) const { return lines().content(bytes(), line); }

  /// Replaces bytes [begin, end) by document_text(text). Ends are clamped to the text and moved down
  /// to code point boundaries. A "\r" before a "\n" makes one line end with it. What both texts begin
  /// and end with is no part of the edit, and what changes nothing is none. kBadInput, and nothing
  /// changed, if the result would pass kDocumentBytesMax.
  Result<void> replace(std::size_t begin, std::size_t end, std::string_view text);
  Result<void> replace_all(std::string_view text) { return replace(0, bytes().size(), text); }

 private:
  friend class Document;
  friend Result<SnapshotPtr> with_replaced(const SnapshotPtr& base, std::size_t begin,
                                           std::size_t end, std::string_view text);
  bool edited() const { return !edits_.empty(); }
  void apply(const Edit& edit, std::string_view text);
  SnapshotPtr snapshot() &&;

  SnapshotPtr base_;
  std::string bytes_;  ///< these two only once edited()
  LineIndex lines_;
  std::vector<Edit> edits_;  ///< since base_
  std::size_t bytes_moved_ = 0;
};

/// The current version of one open document. Thread: its owner's (io).
class Document {
 public:
  /// With document_text(text). Takes any size: see open().
  explicit Document(std::string_view text);
  /// As the constructor; kBadInput past kDocumentBytesMax.
  static Result<Document> open(std::string_view text);

  const SnapshotPtr& snapshot() const { return snapshot_; }
  /// As Revision's; each makes one version.
  Result<void> replace(std::size_t begin, std::size_t end, std::string_view text);
  Result<void> replace_all(std::string_view text);

  /// Several edits as one version: revise(), edit, adopt(). adopt() takes a revision of the current
  /// snapshot.
  Revision revise() const { return Revision(snapshot_); }
  void adopt(Revision revision);

 private:
  SnapshotPtr snapshot_;
};

}  // namespace efimd::text
