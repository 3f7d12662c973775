#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "daemon/completion/budgets.h"
#include "daemon/completion/documents/documents.h"
#include "engine/engine.h"

namespace efimd::completion {

/// There is nothing to do before the next message.
inline constexpr auto kNever = std::chrono::steady_clock::time_point::max();

/// Evaluates what is likely next while nobody waits, in this order, the document used last
/// first:
///
///   I-0  of documents that were opened again, what of their noted anchors was no whole page, and so
///        was not stored: the first keystroke then finds them whole;
///   I-1  the full anchor for the cursor: before, then after, then what is typed so far;
///   I-2  anchors that an edit elsewhere made stale, at the places where they were;
///   I-3  the spine behind the cursor, once the text has settled (Budgets::settle);
///   I-4  the same for the other open documents.
///
/// Every step is short while somebody types (kStepMs, or one token's time where that is longer), and
/// makes way within a layer of the model at any time. Where everything is in KV nothing is done.
///
/// Thread: engine.  Takes no KV memory that an open sequence holds.
class Idle {
 public:
  using Clock = std::chrono::steady_clock;

  /// What a step of background work may take while somebody types.
  static constexpr double kStepMs = 15;
  /// Without a message for this long nobody is in the middle of a word: steps grow to the engine's.
  static constexpr auto kPause = std::chrono::milliseconds(300);
  Idle(engine::Engine& engine, Documents& documents, Budgets& budgets)
      : engine_(engine), documents_(documents), budgets_(budgets) {}

  /// A message was handled: what was learned of the documents is of the past.
  void wake(Clock::time_point now = Clock::now()) { woken_ = now; }

  /// I-0 and I-1 for the document used last; false when `stop` fired or the device failed.
  bool prepare_cursor(const std::stop_token& stop);
  /// The rest; false likewise. `later` is set to the time from which on there is more to do.
  bool prepare_places(const std::stop_token& stop, Clock::time_point& later);

  /// A document's full anchor that rides along in the generation for `serving`, as many tokens
  /// a step as do not make it longer. For one generation: what is wanted is looked up once.
  class Ride {
   public:
    Ride(Idle& idle, DocumentState& document, const KeptAnchor& serving)
        : idle_(idle), document_(document), serving_(serving) {}
    /// The next tokens; empty when the anchor is whole, or rides are not free here.
    engine::BatchItem next();

   private:
    Idle& idle_;
    DocumentState& document_;
    const KeptAnchor& serving_;
    std::optional<int> step_tokens_;  ///< once begun
    KeptAnchor* riding_ = nullptr;
    std::vector<engine::TokenId> tokens_;
  };

 private:
  bool prepare_anchor(DocumentState& document, const std::stop_token& stop);
  /// I-0; false when `stop` fired or the device failed.
  bool complete_recalled(DocumentState& document, const std::stop_token& stop);
  bool renew_stale(DocumentState& document, const std::stop_token& stop);
  bool prepare_spine(DocumentState& document, const std::stop_token& stop);
  /// The full anchor for the document's cursor, made if there is none; null when it is whole, or the
  /// document's cursor is not known.
  struct Wanted {
    KeptAnchor* kept = nullptr;
    std::vector<engine::TokenId> tokens;
  };
  Wanted wanted_anchor(DocumentState& document);
  bool evaluate(engine::SequenceId sequence, std::span<const engine::TokenId> tokens,
                const std::stop_token& stop);
  int step_tokens() const;
  /// How many tokens may ride along with one.
  int free_ride_tokens() const;

  engine::Engine& engine_;
  Documents& documents_;
  Budgets& budgets_;  ///< learns what steps cost
  Clock::time_point woken_;
};

}  // namespace efimd::completion
