#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace efimd::text {

/// Consequence: didChange that would grow past it makes the document unusable for completion until it is reopened.
inline constexpr std::size_t kDocumentBytesMax = std::size_t{64} << 20;
/// Edits that a snapshot remembers; an older reader compares texts instead.
inline constexpr std::size_t kRecentEditsMax = 256;

/// One replacement, in bytes of the text just before it.
struct Edit {
  std::uint64_t serial = 0;  ///< of the snapshot that it produced
  std::size_t begin = 0;
  std::size_t removed = 0;
  std::size_t inserted = 0;
};

/// Where lines start. A line ends at "\n", "\r\n" or a lone "\r" (LSP, TextDocument).
class LineIndex {
 public:
  explicit LineIndex(std::string_view text);
  std::size_t line_count() const { return starts_.size(); }
  /// First byte of `line`; the text's size for lines past the end.
  std::size_t start(std::size_t line) const;
  /// One past the last byte of the line's content, its terminator left out.
  std::size_t content_end(std::string_view text, std::size_t line) const;
  std::size_t line_of(std::size_t byte) const;

 private:
  std::vector<std::size_t> starts_;
};

/// One immutable version of a document: valid UTF-8 bytes with their lines and how they came to be.
///
/// Thread: any (immutable, shared by pointer).
class Snapshot {
 public:
  std::string_view bytes() const { return bytes_; }
  const LineIndex& lines() const { return lines_; }
  /// Counts versions of this document in this process; grows by one with each edit.
  std::uint64_t serial() const { return serial_; }
  /// Oldest first, ending with the edit that made this snapshot; empty for an opened text.
  std::span<const Edit> recent_edits() const { return recent_edits_; }
  /// The edits that lead from version `serial` to this one; nullopt-like `complete == false` when they are no
  /// longer remembered.
  struct Since {
    bool complete = false;
    std::span<const Edit> edits;
  };
  Since edits_since(std::uint64_t serial) const;

 private:
  friend class Document;
  Snapshot(std::string bytes, std::uint64_t serial, std::vector<Edit> recent_edits);
  std::string bytes_;
  LineIndex lines_;
  std::uint64_t serial_;
  std::vector<Edit> recent_edits_;
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

/// The current version of one open document. Thread: its owner's (io).
class Document {
 public:
  /// Invalid UTF-8 becomes U+FFFD, so that every snapshot is valid.
  explicit Document(std::string_view text);

  const SnapshotPtr& snapshot() const { return snapshot_; }
  /// Replaces bytes [begin, end). Ends are clamped to the text and moved down to code point boundaries.
  /// kBadInput, and nothing changed, when the result would pass kDocumentBytesMax.
  Result<void> replace(std::size_t begin, std::size_t end, std::string_view text);
  Result<void> replace_all(std::string_view text);

 private:
  SnapshotPtr snapshot_;
};

}  // namespace efimd::text
