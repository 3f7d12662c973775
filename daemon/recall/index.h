#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/recall/batch.h"
#include "daemon/recall/candidate.h"
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

/// What the index holds and what it costs.
struct Usage {
  std::size_t projects = 0;
  std::size_t files = 0;
  std::size_t documents = 0;
  std::size_t text_bytes = 0;     ///< of files and session texts
  std::size_t bytes = 0;          ///< with the index over them; documents are shared, not counted
  std::size_t files_dropped = 0;  ///< for want of budget, since the start
};

/// What the user's own text says next: finds earlier text that matches the text before the cursor
/// and proposes how it went on.
///
/// An open document stands for its file: while it is open, the file's text from the disk is not
/// searched. Documents are searched as they are (no index to keep up with keystrokes), files through
/// their batches.
///
/// Thread: its owner's (engine).  Owns: everything handed to it.
/// Limits: Limits; of documents, kScannedBytesMax around the cursor and in others.
/// Failure: none; text that does not fit is dropped, the least recently used project first.
/// Cost: set_document() some microseconds, find() at most 200 us with 64 MiB of files.
class Index {
 public:
  explicit Index(Limits limits = {});
  ~Index();
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;

  /// Opens the document or gives it a newer version. What the edits since the last version removed
  /// is kept as deleted text.
  void set_document(const Where& where, text::SnapshotPtr snapshot);
  /// The file's text from the disk counts again.
  void close_document(const Where& where);

  /// A suggestion that the user took: `text` was put at byte `at` of `document`.
  void accept(const Where& where, std::string_view document, std::size_t at, std::string_view text);

  /// Adds files; a file that was there is replaced.
  void add_files(std::string_view project, BatchPtr batch);
  void add_file(const Where& where, std::string_view text);
  void remove_file(const Where& where);
  /// Removes all that came from it, also what was deleted from it or accepted in it: the file became
  /// secret or excluded. The document, if open, must not be set again.
  void forget(const Where& where);
  void remove_project(std::string_view project);

  /// The best candidates, the most likely first; no two of the same text.
  std::vector<Candidate> find(const Query& query) const;
  /// How the best match goes on, at most `bytes_max` bytes over lines: a draft that something else
  /// verifies. Empty if no match is long enough.
  std::string draft(const Query& query, std::size_t bytes_max) const;

  Usage usage() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace efimd::recall
