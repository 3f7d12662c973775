#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <span>
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

/// The part of each document that outlives the daemon: the user's place in it, and the KV of that
/// place.
///
///   When a document is opened, its noted anchors are made again from the text, as far as the text
///   is unchanged. Idle time loads the pages of their prompts (restore_one()). Then the first
///   request finds anchor and KV as if the daemon had never ended.
///
/// Thread: engine.  Without a keeper it does nothing.
class SessionMemory {
 public:
  /// `shows_heads`: prompts show other files; else what a note says of them is left out.
  SessionMemory(engine::Engine& engine, Documents& documents, std::shared_ptr<PageKeeper> keeper,
                bool shows_heads)
      : engine_(engine),
        documents_(documents),
        keeper_(std::move(keeper)),
        shows_heads_(shows_heads) {}

  /// Whether anything is ever stored.
  bool stores() const { return keeper_ != nullptr; }
  /// kNone if the document must not be stored.
  engine::SourceId source_of(const DocumentKey& document, bool may_be_stored) const;
  void open(const OpenedDocument& opened);
  /// Call it before Documents::close(), which forgets the place that is noted here.
  void close(const DocumentKey& document);
  /// The user turned to the document from another: what is kept longest follows that (Returns).
  void visit(const DocumentKey& document, DocumentState& state);
  /// Loads the pages of one prompt, or a part of them if `stop` fires; false if none are left.
  bool restore_one(const std::stop_token& stop);
  /// Notes the documents that were used since the last call.
  void note_places();
  /// Hands pages to the store until `stop` fires. False when it has no room for what there is to write.
  bool write_pages(const std::stop_token& stop);
  /// The same for `time`, because the daemon ends. The store bounds what it takes on its side.
  void write_last_pages(std::chrono::milliseconds time);
  /// Drops documents that were closed for `kept`, and gives the memory of their KV back where it can be
  /// given (Engine::gives_back()); the disk keeps it. Returns when there will be more to do: now if
  /// `stop` fired, Clock::time_point::max() if no closed document is left.
  std::chrono::steady_clock::time_point give_back_closed(std::chrono::milliseconds kept,
                                                         const std::stop_token& stop);
  /// Drops the texts and pages of these documents, and all pages that follow them; those of every
  /// document if one is empty. So it does with documents whose prompts show one of them. Open ones begin
  /// anew with the next request, and are not stored any more until they are opened again.
  void forget(std::span<const std::string> uris);
  /// From now on the document's prompts may show these files, too: what is kept of them goes with any
  /// of these.
  void note_shown(DocumentState& state, const std::vector<std::string>& uris);

 private:
  /// Prompts that wait to be restored; further documents are opened cold.
  static constexpr std::size_t kPromptsMax = 1024;
  struct Prompt {
    std::vector<engine::TokenId> tokens;
    engine::SourceId source{};
  };
  void note_place(const DocumentKey& document, DocumentState& state);
  void recall(const Note& note, const OpenedDocument& opened, DocumentState& state);
  void want(std::vector<engine::TokenId> tokens, engine::SourceId source);

  engine::Engine& engine_;
  Documents& documents_;
  std::shared_ptr<PageKeeper> keeper_;
  const bool shows_heads_;
  std::deque<Prompt> prompts_;
  std::set<DocumentKey> forgotten_;  ///< open, and not stored any more
  bool giving_back_ = false;         ///< documents were dropped, and memory of theirs may be left
};

}  // namespace efimd::completion
