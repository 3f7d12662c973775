#pragma once

#include <map>

#include "daemon/completion/request.h"
#include "daemon/recall/index.h"
#include "daemon/text/document.h"

namespace efimd::completion {

inline recall::Where where_of(const TextHome& home) { return {home.project, home.path}; }

/// Tells the index which texts editors have open, each for as long as its editor has it open. Documents
/// forgets the oldest of many; this does not.
///
/// Thread: engine. Borrows the index.
class OpenTexts {
 public:
  explicit OpenTexts(recall::Index* index) : index_(index) {}  ///< null: nobody is told

  /// The document is open, or has another text. One that has no home any more became a secret: all that
  /// came from it leaves the index at once.
  void set(const DocumentKey& document, const TextHome& home, const text::SnapshotPtr& snapshot);
  /// An editor closes it: the file's text counts again, or that of another editor which has the file
  /// open.
  void close(const DocumentKey& document);

 private:
  struct Open {
    TextHome home;
    text::SnapshotPtr snapshot;
  };
  recall::Index* const index_;
  std::map<DocumentKey, Open> open_;
};

}  // namespace efimd::completion
