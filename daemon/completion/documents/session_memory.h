#pragma once

#include <deque>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/completion/documents/documents.h"
#include "daemon/completion/documents/note.h"
#include "daemon/completion/documents/page_keeper.h"
#include "engine/engine.h"

namespace efimd::completion {

/// A document that an editor opened. `may_be_stored`: whether KV of it may go to the disk (ST-2).
struct OpenedDocument {
  DocumentKey document;
  text::SnapshotPtr snapshot;
  bool may_be_stored = false;
  prompt::FileName file = {};
  TextHome home = {};
};

/// What of each document outlives the daemon: where the user was in it, and the KV of that.
///
///   On opening, the anchors that were noted are made again from the text, as far as it is
///   unchanged, and their prompts' pages are wanted; idle time brings them (restore_one()). The
///   first request then finds anchor and KV as if the daemon had never ended.
///
/// Thread: engine.  Without a keeper it does nothing.
class SessionMemory {
 public:
  SessionMemory(engine::Engine& engine, Documents& documents, std::shared_ptr<PageKeeper> keeper)
      : engine_(engine), documents_(documents), keeper_(std::move(keeper)) {}

  /// kNone when the document must not be stored.
  engine::SourceId source_of(const DocumentKey& document, bool may_be_stored) const;
  void open(const OpenedDocument& opened);
  void close(const DocumentKey& document);
  /// Brings the pages of one prompt, or a part when `stop` fires; false when none is left to bring.
  bool restore_one(const std::stop_token& stop);
  /// Notes the documents that were used since.
  void note_places();
  /// Drops what is held of the document, and of all behind its pages; every document when empty.
  /// What is open of them is not stored any more until it is opened again.
  void forget(const std::string& uri);

 private:
  /// Prompts waiting to be restored; more documents than that are opened cold.
  static constexpr std::size_t kPromptsMax = 1024;
  struct Prompt {
    std::vector<engine::TokenId> tokens;
    engine::SourceId source{};
  };
  void recall(const Note& note, const OpenedDocument& opened, DocumentState& state);
  void want(std::vector<engine::TokenId> tokens, engine::SourceId source);

  engine::Engine& engine_;
  Documents& documents_;
  std::shared_ptr<PageKeeper> keeper_;
  std::deque<Prompt> prompts_;
  std::set<DocumentKey> forgotten_;  ///< open, and not stored any more
};

}  // namespace efimd::completion
