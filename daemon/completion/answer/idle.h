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
///   I-0  the part of noted anchors that filled no page and so was not stored, for documents that
///        were opened again; the first keystroke then finds them whole;
///   I-1  the full anchor for the cursor, or the first window's: before, then after, then what is
///        typed so far. A wider one that lacks some typed tokens only is completed instead;
///   I-5  for the document used last, the wide window in stages: its before, with a short after, then
///        with more, then with all of it. Each stage is an anchor that the next request may take, and
///        keeps the hole of the one before, so that only more of after is evaluated. For one document
///        this takes CPU time up to Budgets::widening_cpu_s_max, of which each request
///        gives kWideningBackS back;
///   I-2  anchors that an edit elsewhere made stale, at their old places;
///   I-3  the spine after the cursor, when the text has settled (Budgets::settle; a wide window: for
///        as long as the work will take, so that at most half of such work is lost to typing);
///   I-4  the same for the other open documents, without I-5. Their anchors are evaluated together
///        (packed.h).
///
/// Every step is short while somebody types: kStepMs, or one token's time if that is longer, or
/// kPartMs a part where a stopped step goes on later (Engine::step_parts). It makes way at once on
/// the CPU, and elsewhere within a layer of the model. Nothing is done if everything is in KV.
///
/// Thread: engine.  Takes no KV memory that an open sequence holds.
class Idle {
 public:
  using Clock = std::chrono::steady_clock;

  /// The longest step of background work while somebody types.
  static constexpr double kStepMs = 15;
  /// The longest part of a step that is stopped within a part, which is lost, and goes on later. More
  /// tokens in a step take less time each: with 3 ms a processor without AVX-512 took nine.
  static constexpr double kPartMs = 14;
  /// Without a message for half of this nobody is in the middle of a word: steps grow with the pause,
  /// up to the engine's. For as long as this widening goes before looking ahead.
  static constexpr auto kPause = std::chrono::milliseconds(300);
  /// CPU seconds of widening that a request gives back to its document.
  static constexpr double kWideningBackS = 1;
  Idle(engine::Engine& engine, Documents& documents, Budgets& budgets)
      : engine_(engine), documents_(documents), budgets_(budgets) {}

  /// A message was handled: what was learned of the documents is of the past.
  void wake(Clock::time_point now = Clock::now()) { woken_ = now; }

  /// Whether nobody has typed for Budgets::settle.
  bool has_settled() const { return Clock::now() >= woken_ + budgets_.settle; }

  /// I-0 and I-1 for the document used last; false when `stop` fired or the device failed.
  bool prepare_cursor(const std::stop_token& stop);
  /// I-5, until `deadline`; false likewise.
  bool widen_cursor(const std::stop_token& stop, Clock::time_point deadline = kNever);
  /// The rest; false likewise. `later` is set to the time from which on there is more to do.
  bool prepare_places(const std::stop_token& stop, Clock::time_point& later);

  /// Piggybacked prefill: a document's full anchor in the generation for `serving`, as many tokens
  /// a step as do not make it longer. For one generation: what is wanted is looked up once.
  class Piggyback {
   public:
    Piggyback(Idle& idle, DocumentState& document, const KeptAnchor& serving)
        : idle_(idle), document_(document), serving_(serving) {}
    /// The next tokens; empty if the anchor is whole, or more tokens are not free here.
    engine::BatchItem next();

   private:
    Idle& idle_;
    DocumentState& document_;
    const KeptAnchor& serving_;
    std::optional<int> step_tokens_;  ///< once begun
    KeptAnchor* prefilled_ = nullptr;
    std::vector<engine::TokenId> tokens_;
  };

 private:
  bool prepare_anchor(DocumentState& document, const std::stop_token& stop);
  /// I-0 and I-1 for documents that are not the cursor's.
  bool prepare_anchors(std::span<DocumentState* const> documents, const std::stop_token& stop);
  /// I-0; false when `stop` fired or the device failed.
  bool complete_recalled(DocumentState& document, const std::stop_token& stop);
  bool renew_stale(DocumentState& document, const std::stop_token& stop);
  /// Sets `later` if the text has not settled for long enough.
  bool prepare_spine(DocumentState& document, const std::stop_token& stop,
                     Clock::time_point& later);
  /// The document's spine for its cursor, as tokens to evaluate; empty if there is nothing to do.
  std::vector<engine::TokenId> spine_tokens(DocumentState& document);
  /// An anchor, and the prompt to evaluate for it; null when there is nothing to do.
  struct Wanted {
    KeptAnchor* kept = nullptr;
    std::vector<engine::TokenId> tokens;
  };
  struct Serving {
    Wanted wanted;
    int poverty = 0;  ///< prompt::view_rank()
    int missing = 0;  ///< tokens, at least 1
  };
  /// The anchors that serve the document's cursor, the fullest first.
  std::vector<Serving> serving_cursor(DocumentState& document);
  /// What I-1 evaluates for the document's cursor, if that is known: an anchor that lacks some typed
  /// tokens only, or the first window's, made if there is none.
  Wanted wanted_anchor(DocumentState& document);
  /// I-5's next stage for the document's cursor; null when the window is whole.
  Wanted wanted_stage(DocumentState& document);
  /// The document's anchor of that view for its cursor, made if there is none.
  Wanted anchor_for(DocumentState& document, prompt::View view);
  /// The least of anchors that serve the document's cursor and are whole in KV.
  int poverty_at_cursor(DocumentState& document);
  /// the newer head serves all requests once the cursor's anchor is whole with it.
  void take_head(DocumentState& document);
  /// Drops the stages that a whole, fuller anchor made needless.
  void drop_stages(DocumentState& document);
  /// What evaluating a prompt came to.
  enum class Done { kWhole, kStopped, kNoRoom };
  Done evaluate(engine::SequenceId sequence, std::span<const engine::TokenId> tokens,
                const std::stop_token& stop, Clock::time_point deadline = kNever);
  int step_tokens() const;
  void learn(int tokens, double ms);
  /// How many tokens a step may take beside one, free of cost.
  int free_tokens() const;

  engine::Engine& engine_;
  Documents& documents_;
  Budgets& budgets_;  ///< learns what steps cost
  Clock::time_point woken_;
};

}  // namespace efimd::completion
