#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/recall/batch.h"
#include "daemon/recall/candidate.h"
#include "daemon/recall/search.h"
#include "daemon/text/document.h"

namespace efimd::recall {

struct Limits {
  std::size_t budget_bytes = std::size_t{192} << 20;   ///< text and index of all projects' files
  std::size_t session_bytes = std::size_t{128} << 10;  ///< deleted and accepted text, oldest out
};

/// A file and the project that it belongs to. Projects never see each other's text; the empty
/// project is one of its own. `path` is any name that documents and files share: the absolute path
/// of a file, the URI of what is no file.
struct Where {
  std::string_view project;
  std::string_view path;
};

struct Query {
  Where where;
  std::string_view text;   ///< the whole document as it is now
  std::size_t cursor = 0;  ///< byte in it
  std::size_t candidates_max = 4;
};

/// Text that may come next. Line ends are "\n".
struct Continuation {
  std::string text;
  double share = 0;        ///< of the weight of all that matches: what says the same of the line
  std::size_t agreed = 0;  ///< equal bytes before it in the best match
  std::size_t votes = 0;   ///< matches that say the same of the line
};

/// The index's contents and their cost.
struct Usage {
  std::size_t projects = 0;
  std::size_t files = 0;
  std::size_t documents = 0;
  std::size_t text_bytes = 0;     ///< of files and session texts
  std::size_t bytes = 0;          ///< with the index over them; documents are shared, not counted
  std::size_t files_dropped = 0;  ///< because of the budget, since the start
};

/// Files of a project that left the index for want of room.
struct Dropped {
  std::string project;
  std::vector<std::string> paths;
};

/// Small batches of a project that are to be one, so that a look-up has fewer to visit. A value.
class Merge {
 public:
  /// The files that are left of them, in one batch. Costs as make_batch() does; any thread.
  BatchPtr made(const Between& between = [] {}) const;
  const std::string& project() const { return project_; }

 private:
  friend class Index;
  std::string project_;
  std::vector<HeldBatch> from_;
};

/// Finds earlier text of the user's own that matches the text before the cursor, and proposes how
/// it went on. Lines of the document that are built as the cursor's line are matches, too, with the
/// user's names in place of theirs.
///
/// An open document stands for its file: while it is open, text that only the file on the disk has is
/// not searched. What both have is found through the file's batch. All else of a document is read
/// through, so no index keeps up with keystrokes.
///
/// Thread: its owner's (engine).  Owns: everything handed to it.
/// Limits: Limits; of documents, kScannedBytesMax around the cursor and in others.
/// Failure: none; text that does not fit is dropped, the least recently used project first.
/// Cost: set_document() some microseconds, find() 250 us at p99 with 32 MiB of files (slow Xeon).
class Index {
 public:
  explicit Index(Limits limits = {});
  ~Index();
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;

  /// Opens the document or gives it a newer version. Text that the edits since the last version
  /// removed is kept as deleted text.
  void set_document(const Where& where, text::SnapshotPtr snapshot);
  /// The file's text from the disk counts again.
  void close_document(const Where& where);

  /// A suggestion that the user took: `text` was put at byte `at` of `document`.
  void accept(const Where& where, std::string_view document, std::size_t at, std::string_view text);

  /// Adds files; a file that was there is replaced.
  void add_files(std::string_view project, BatchPtr batch);
  void add_file(const Where& where, std::string_view text);
  /// What is worth merging now; nullopt if nothing is, or the last one is not made yet. Whoever asks
  /// has it made on another thread and hands the result over.
  std::optional<Merge> merge_wanted();
  void take_merged(const Merge& merge, const BatchPtr& made);
  void remove_file(const Where& where);
  /// Removes all that came from it, also what was deleted from it or accepted in it: the file became
  /// secret or excluded. The document, if open, must not be set again.
  void forget(const Where& where);
  /// The same in each project: the file was purged. If it is open, the next set_document() counts.
  void forget_everywhere(std::string_view path);
  void remove_project(std::string_view project);
  /// Files dropped since the last call, so that whoever added them can add them again.
  std::vector<Dropped> take_dropped();

  /// The best candidates, the most likely first; no two of the same text.
  std::vector<Candidate> find(const Query& query) const;
  /// How the text goes on after most of what matches, at most `bytes_max` bytes over lines: a draft
  /// that something else verifies. No text if no match is long enough.
  Continuation draft(const Query& query, std::size_t bytes_max) const;

  Usage usage() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace efimd::recall
