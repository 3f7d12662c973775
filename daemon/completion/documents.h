#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/completion/completion.h"
#include "daemon/completion/event.h"
#include "daemon/completion/rejected.h"
#include "daemon/prompt/planner.h"
#include "engine/engine.h"

namespace efimd::completion {

/// Anchors kept for one document: places that a person comes back to, and the one that idle time
/// prepares.
inline constexpr std::size_t kAnchorsMax = 6;

/// An anchor and the KV of its prompt.
struct KeptAnchor {
  prompt::Anchor anchor;
  std::optional<engine::SequenceId> sequence;  ///< stays open, so that its KV stays
  std::uint64_t used = 0;                      ///< order of use
};

/// What is remembered of one document between requests.
struct DocumentState {
  explicit DocumentState(const engine::Tokenizer& tokenizer) : spine(tokenizer) {}

  std::vector<KeptAnchor> anchors;  ///< the last one used first
  prompt::Spine spine;
  std::optional<LastRequest> last;
  Rejections rejections;
  bool open = true;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t used = 0;  ///< order of use
  std::chrono::steady_clock::time_point used_at;
  engine::SourceId source = engine::SourceId::kNone;  ///< kNone: nothing of it may be stored
  std::uint64_t noted = 0;  ///< `used` when it was noted last (SessionMemory)
};

/// The documents that have anchors, least recently used first out, closed ones before open ones.
///
/// Thread: engine.  Owns: the sequences, closed with their documents.
class Documents {
 public:
  Documents(engine::Engine& engine, std::size_t documents_max);
  ~Documents();
  Documents(const Documents&) = delete;
  Documents& operator=(const Documents&) = delete;

  /// The state of `document`, made if there is none. The reference lives until the next use().
  DocumentState& use(const DocumentKey& document);
  /// Carries the document's anchors over to `snapshot`, which is a version of the same text, or
  /// another text where the document was closed meanwhile. What has lost its place is dropped.
  void follow(DocumentState& state, const text::Snapshot& snapshot);
  /// Makes it the first to be dropped. A document of this name that comes later is another text.
  void close(const DocumentKey& document);

  /// Whether the session's last request was for this document, or it had none.
  bool is_current(const DocumentKey& document) const;
  void set_current(const DocumentKey& document);

  /// Makes the anchor of `plan` the document's last used one: in the place of the one at index
  /// `remembered`, or as a new one (-1), for which the one used longest ago goes when there are too
  /// many.
  KeptAnchor& keep(DocumentState& state, const prompt::Plan& plan, int remembered);
  engine::SequenceId sequence_of(KeptAnchor& kept);
  /// All of its anchors, with their sequences.
  void drop_anchors(DocumentState& state);
  void for_each(const std::function<void(const DocumentKey&, DocumentState&)>& visit);
  /// After a failure that leaves its KV undefined.
  void drop_sequence(KeptAnchor& kept);
  /// Closes the sequence of the least recently used other anchor; false when there is none.
  bool make_room(const KeptAnchor& but);

  /// For the status: what was done with each, by time of use.
  struct Row {
    ServiceStatus::File file;
    std::chrono::steady_clock::time_point used_at;
  };
  std::vector<Row> rows() const;

 private:
  using States = std::map<DocumentKey, DocumentState>;
  States::iterator first_out(const DocumentState& but);
  void drop(DocumentState& state);
  void drop_lost(DocumentState& state);
  int tokens_held(const DocumentState& state) const;

  engine::Engine& engine_;
  const std::size_t documents_max_;
  std::uint64_t uses_ = 0;
  States states_;
  std::map<std::uint64_t, std::string> current_;  ///< session -> uri of its last request
};

}  // namespace efimd::completion
