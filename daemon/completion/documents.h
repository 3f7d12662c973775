#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/completion/completion.h"
#include "daemon/completion/event.h"
#include "daemon/prompt/planner.h"
#include "engine/engine.h"

namespace efimd::completion {

/// What is remembered of one document between requests.
struct DocumentState {
  std::optional<prompt::Anchor> anchor;
  std::optional<engine::SequenceId> sequence;  ///< stays open, so that its KV stays
  std::optional<LastRequest> last;
  bool open = true;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t used = 0;  ///< order of use
  std::chrono::steady_clock::time_point used_at;
};

/// The documents that have an anchor or a sequence, least recently used first out, closed ones
/// before open ones.
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
  /// Makes it the first to be dropped. A document of this name that comes later is another text.
  void close(const DocumentKey& document);

  /// Whether the session's last request was for this document, or it had none.
  bool is_current(const DocumentKey& document) const;
  void set_current(const DocumentKey& document);

  engine::SequenceId sequence_of(DocumentState& state);
  /// After a failure that leaves its KV undefined.
  void drop_sequence(DocumentState& state);
  /// Closes the sequence of the least recently used other document; false when there is none.
  bool make_room(const DocumentState& but);

  /// For the status: what was done with each, by time of use.
  struct Row {
    ServiceStatus::File file;
    std::chrono::steady_clock::time_point used_at;
  };
  std::vector<Row> rows() const;

 private:
  using States = std::map<DocumentKey, DocumentState>;
  States::iterator first_out(const DocumentState& but);

  engine::Engine& engine_;
  const std::size_t documents_max_;
  std::uint64_t uses_ = 0;
  States states_;
  std::map<std::uint64_t, std::string> current_;  ///< session -> uri of its last request
};

/// Whether the anchor's tokens spell what `snapshot` has at its offsets: an anchor of a closed
/// document whose file is opened again unchanged is still good.
bool spells(const prompt::Anchor& anchor, const text::Snapshot& snapshot,
            const engine::Tokenizer& tokenizer);

}  // namespace efimd::completion
