#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/completion/documents/event.h"
#include "daemon/completion/documents/rejected.h"
#include "daemon/completion/documents/suggestion.h"
#include "daemon/completion/request.h"
#include "daemon/completion/status.h"
#include "daemon/context/edits.h"
#include "daemon/prompt/planner.h"
#include "engine/engine.h"

namespace efimd::completion {

/// Anchors kept for one document: places that the user comes back to, and the one that idle time
/// prepares.
inline constexpr std::size_t kAnchorsMax = 8;

/// Suggestions remembered for one document: the one shown, the next, and those of other places.
inline constexpr std::size_t kSuggestionsMax = 8;

/// An anchor and the KV of its prompt.
struct KeptAnchor {
  prompt::Anchor anchor;
  std::optional<engine::SequenceId> sequence;  ///< stays open, so that its KV stays
  std::uint64_t used = 0;                      ///< order of use
  std::uint64_t visit = 0;                     ///< of its document, when it was used last
};

/// The state of one document between requests.
struct DocumentState {
  DocumentState(const engine::Tokenizer& tokenizer, const prompt::FileName& file_)
      : file(file_),
        spine(tokenizer, prompt::path_head(file, tokenizer)),
        first_spine(tokenizer, spine.path()) {
    anchors.reserve(kAnchorsMax);  // the first one stays where it is while others come and go
  }

  std::vector<KeptAnchor> anchors;  ///< the last one used first; its memory does not move
  prompt::FileName file;
  prompt::Spine spine;  ///< of the window, with other files in front
  prompt::Spine
      first_spine;  ///< of the first window (Windows::has_first()) and near views, without
  /// With a newer head, until idle time has made the cursor's anchor whole with it.
  std::optional<prompt::Spine> coming;
  std::vector<std::string> head_files;   ///< of the newest head, with the reasons; for people
  std::vector<std::string> shown_files;  ///< URIs; of the heads since the state was made
  std::vector<engine::SourceId> shown_sources;  ///< the same, as the engine knows them
  context::RecentEdits edited;                  ///< by the user, of this text
  std::vector<engine::TokenId> edits;  ///< what the next full anchor shows of the others' (A-14)
  std::uint64_t head_asked = 0;        ///< version of the text for which a head was asked; 0: none
  std::optional<engine::SequenceId> spine_sequence;
  double widening_cpu_s = 0;     ///< what idle time spent on widening, less what requests gave back
  prompt::Windows windows;       ///< of the last request
  text::SnapshotPtr snapshot;    ///< the newest that was seen
  TextHome home;                 ///< of the last request or opening
  std::optional<Request> asked;  ///< the last request
  /// The cursor's place when the document was noted (SessionMemory), until a request gives a new
  /// one.
  std::optional<std::size_t> recalled_cursor;
  std::optional<Item> shown;            ///< its answer
  std::vector<Suggestion> suggestions;  ///< the newest first, at most kSuggestionsMax
  std::optional<LastRequest> last;
  Rejections rejections;
  bool open = true;
  std::chrono::steady_clock::time_point closed_at;  ///< unless it is open
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t used = 0;   ///< order of use
  std::uint64_t visit = 0;  ///< number of the last visit
  int longer = 0;           ///< visits that it is kept longer than others (Returns)
  std::chrono::steady_clock::time_point used_at;
  engine::SourceId source = engine::SourceId::kNone;  ///< kNone: nothing of it may be stored
  std::uint64_t noted = 0;  ///< `used` when it was noted last (SessionMemory)

  prompt::Spine& spine_of(prompt::View view) {
    const bool is_first = windows.has_first() && prompt::is_of_first_window(view);
    return is_first || view == prompt::View::kNear ? first_spine : spine;
  }
  /// The one that idle time makes whole.
  prompt::Spine& newest_spine_of(prompt::View view) {
    prompt::Spine& now = spine_of(view);
    return coming && &now == &spine ? *coming : now;
  }
  /// The visit until which what was used in `visited` is kept, where others were used later.
  std::uint64_t until(std::uint64_t visited) const {
    return visited + static_cast<std::uint64_t>(longer);
  }
  const prompt::PathHead& newest_path() const { return (coming ? *coming : spine).path(); }
  void judge_head(prompt::Anchor& anchor) const {
    anchor.lacks_head = anchor.path != newest_path() || (anchor.edits.empty() && !edits.empty());
  }
  /// There is another head, or there are edits to show: remembered texts have seen less than that.
  void judge_heads() {
    for (KeptAnchor& kept : anchors) judge_head(kept.anchor);
    for (Suggestion& suggestion : suggestions)
      suggestion.view_rank = std::max(suggestion.view_rank, 1);
  }
};

/// The documents that have anchors. Closed ones go before open ones, and among them those first whose
/// last visit is the longest ago. Documents that the user returns to are kept longer (Returns).
///
/// Thread: engine.  Owns: the sequences, closed with their documents.
class Documents {
 public:
  Documents(engine::Engine& engine, std::size_t documents_max);
  ~Documents();
  Documents(const Documents&) = delete;
  Documents& operator=(const Documents&) = delete;

  /// The state of `document`, made if there is none. The reference lives until the next use().
  DocumentState& use(const DocumentKey& document, const prompt::FileName& file);
  const DocumentState* find(const DocumentKey& document) const;  ///< null if it is not known
  DocumentState* find_open(const DocumentKey& document);         ///< null if no editor has it open
  /// Carries the document's anchors over to `snapshot`: a version of the same text, or another text
  /// if the document was closed meanwhile. Drops anchors that lost their place.
  void follow(DocumentState& state, const text::Snapshot& snapshot);
  /// Makes it the first to be dropped. If a document of this name comes later, it is another text.
  void close(const DocumentKey& document);

  /// Makes it the one used last, if it is known.
  void focus(const DocumentKey& document);
  /// Records that the shown suggestion was rejected, and stops preparing its successor.
  void dismiss(const DocumentKey& document, const text::Snapshot& snapshot);

  /// Whether the session's last request was for this document, or it had none.
  bool is_current(const DocumentKey& document) const;
  /// False if it was current before.
  bool set_current(const DocumentKey& document);
  /// A visit of the document begins; it is kept `longer` visits longer than others.
  void visited(DocumentState& state, int longer);

  /// The documents that an editor has open, the last used first.
  std::vector<DocumentState*> open_by_use();

  /// Other files that prompts for the document show, from idle time's next full anchor on; at most
  /// `tokens_max` tokens of them. Nothing that is in KV is dropped before that is whole.
  void show_head(DocumentState& state, const context::Head& head, std::size_t tokens_max);
  /// Makes the anchor of `plan` the document's last used one. It replaces the anchor at index
  /// `remembered`, or is new (-1). If there are too many, the one used longest ago is dropped.
  KeptAnchor& keep(DocumentState& state, const prompt::Plan& plan, int remembered);
  /// Adds an anchor that idle time prepares. It stands after the last used one, which stays first.
  KeptAnchor& add_behind(DocumentState& state, const prompt::Plan& plan);
  /// The document's sequence that shares the longest prefix with `tokens`, and its length. A prefix
  /// of a few tokens counts as none.
  struct Start {
    std::optional<engine::SequenceId> sequence;
    int tokens = 0;
  };
  Start best_start(const DocumentState& state, std::span<const engine::TokenId> tokens) const;
  engine::SequenceId sequence_of(KeptAnchor& kept);
  /// Tells the engine whose text a sequence holds: the document's, and if it `shows_others`, theirs.
  void set_sources(const DocumentState& state, engine::SequenceId sequence, bool shows_others);
  /// Forgets each document that is `unwanted`, with its text and sequences, also an open one.
  void forget_if(const std::function<bool(const DocumentKey&, const DocumentState&)>& unwanted);
  void for_each(const std::function<void(const DocumentKey&, DocumentState&)>& visit);
  engine::SequenceId spine_sequence_of(DocumentState& state);
  /// Call it after a failure that leaves its KV undefined.
  void drop_sequence(KeptAnchor& kept);
  /// Drops the anchors that are `superfluous`, but never the last used one.
  void drop_if(DocumentState& state, const std::function<bool(const KeptAnchor&)>& superfluous);
  /// Closes the sequence of the other anchor, or of the spine, whose time is up first. Those used in
  /// this visit come last, and those of `spare` stay. False when there is none.
  bool make_room(const KeptAnchor& but, const DocumentState* spare = nullptr);

  /// One document for the status.
  struct Row {
    ServiceStatus::File file;
    std::chrono::steady_clock::time_point used_at;
  };
  std::vector<Row> rows() const;

 private:
  using States = std::map<DocumentKey, DocumentState>;
  States::iterator first_out(const DocumentState& but);
  /// Drops the document; the session's current one, too, if it has no other. Returns the next.
  States::iterator erase(States::iterator document);
  void drop(DocumentState& state);
  void limit(DocumentState& state);
  /// A sequence for a new anchor's prompt. It is a fork of the best start, if there is one and
  /// memory for it; then a cut inside a page costs nothing.
  std::optional<engine::SequenceId> start(const DocumentState& state, const prompt::Plan& plan);
  void drop_lost(DocumentState& state);
  /// The plan's anchor is used now.
  KeptAnchor& take(const DocumentState& state, KeptAnchor& kept, const prompt::Plan& plan);
  int tokens_held(const DocumentState& state) const;

  engine::Engine& engine_;
  const std::size_t documents_max_;
  std::uint64_t uses_ = 0;
  std::uint64_t visits_ = 0;
  States states_;
  std::map<std::uint64_t, std::string> current_;  ///< session -> uri of its last request
};

}  // namespace efimd::completion
