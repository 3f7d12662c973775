#pragma once

#include <cstdint>

#include "daemon/completion/documents/documents.h"
#include "daemon/completion/documents/session_memory.h"
#include "daemon/text/document.h"

namespace efimd::completion {

/// What a prompt shows of other edits, at most; less in a small window.
inline constexpr int kEditTokensMax = 256;
/// Of the prompt's tokens, one in so many.
inline constexpr int kEditShare = 8;

/// What the user edited last in other files of a document's project, and outside of its own window.
///
///   A document of which nothing may be stored is never shown, and shows nothing: the KV of a prompt
///   goes to the disk with what it shows.
///
/// Thread: engine.  Owns nothing.
class Elsewhere {
 public:
  Elsewhere(const engine::Engine& engine, Documents& documents, SessionMemory& memory)
      : engine_(engine), documents_(documents), memory_(memory) {}

  /// Takes in what was edited in the document up to `snapshot`.
  void follow(DocumentState& document, const text::Snapshot& snapshot) {
    document.edited.follow(snapshot, ++order_);
  }
  /// Decides what the next full anchor of the document shows (DocumentState::edits). Anchors that show
  /// older edits stay. For idle time, because it tokenizes.
  void choose(DocumentState& document);

 private:
  struct Edited;
  /// Of the documents that `document` may show, oldest edit first.
  std::vector<Edited> edited_by_age(const DocumentState& document);

  const engine::Engine& engine_;
  Documents& documents_;
  SessionMemory& memory_;
  std::uint64_t order_ = 0;
};

}  // namespace efimd::completion
