#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "engine/kv/page_store.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/types.h"

namespace efimd::engine {

class Backend;
class Model;

/// Names a live sequence; never reused.
enum class SequenceId : std::uint64_t {};

struct PrefillOptions {
  std::stop_token stop = {};
  /// How many of the last tokens need logits; at most Engine::kLogitsRowsMax.
  int logits_rows = 1;
  /// A prompt of idle time, of which the user's next may be a part: the rows of the one before stay.
  bool ahead = false;
};

/// Tokens to evaluate after those that a sequence holds.
struct BatchItem {
  SequenceId sequence{};
  std::span<const TokenId> tokens;
  /// How many of the last tokens need logits; at most Engine::kLogitsRowsMax.
  int logits_rows = 0;
};

/// The cost of making a sequence hold a prompt.
struct PromptCost {
  int reused = 0;     ///< leading tokens whose KV was there
  int evaluated = 0;  ///< reused + evaluated == the prompt's tokens
  int restored = 0;   ///< of the reused ones, those that came from the store and are used first now
};

/// The contents of the KV room, for the status.
struct KvUsage {
  std::size_t budget_bytes = 0;
  std::size_t used_bytes = 0;  ///< pages that hold tokens, referenced or cached
  HostUsage host = {};         ///< of a device with memory of its own
};

/// A model that evaluates token sequences and keeps their KV.
///
/// Thread: one (the engine thread); a stop token may fire from any.
/// The daemon sees only this interface; tests implement it with a scripted engine.
class Engine {
 public:
  /// Logits rows that a sequence keeps: those of a healed tail, the one before it, and one more,
  /// so that a key that is taken back costs nothing. If a prefill() or a step() asked for more, they
  /// live until its next.
  static constexpr int kLogitsRowsKept = 5;
  /// Logits rows that one call gives: those of a draft and the one before it.
  static constexpr int kLogitsRowsMax = 17;

  virtual ~Engine() = default;

  virtual const Tokenizer& tokenizer() const = 0;
  /// Whether the model was trained on words that break at the prompt's end. Such a model needs no
  /// healing.
  virtual bool fragment_trained() const = 0;
  virtual int window_tokens() const = 0;  ///< most tokens that one sequence may hold
  virtual int step_tokens() const = 0;    ///< most tokens of one step()
  /// Most tokens of a prompt that burdens neither the memory nor generation. Three such prompts fit
  /// the KV memory. A step of one token costs at most 1.3 times what it costs after 512 tokens. The
  /// model's shape says so, so that it is the same on every start.
  virtual int ample_tokens() const { return window_tokens(); }

  virtual SequenceId open_sequence() = 0;
  /// Its full pages can still be found by content until they are evicted (KV-3).
  virtual void close_sequence(SequenceId sequence) = 0;
  /// A new sequence with the tokens of `sequence`, and its last token's logits. Only the partial
  /// page is copied (KV-2). kWindowFull when there is no page for that.
  virtual Result<SequenceId> fork(SequenceId sequence) = 0;

  /// Prefill: makes the sequence hold exactly `tokens` (not empty), and makes the logits after its
  /// last tokens ready. Reuses the sequence's own leading tokens, then pages with the same identity
  /// (KV-1), resident or stored (KV-7). It evaluates the rest in steps. If KV holds all of the
  /// prompt, only tokens whose logits are wanted and gone are evaluated. kStopped between steps
  /// when the stop token fires: what was evaluated stays. kWindowFull past window_tokens(), and if
  /// other sequences hold too much of the KV budget: close some and call again.
  virtual Result<PromptCost> prefill(SequenceId sequence, std::span<const TokenId> tokens,
                                     PrefillOptions options) = 0;
  /// Rewinds the sequence to the leading tokens of `tokens` that have KV, and does nothing else.
  /// Returns how many those are. Never evaluates.
  virtual Result<int> rewind(SequenceId sequence, std::span<const TokenId> tokens) = 0;
  /// Leading tokens of `tokens` whose KV need not be evaluated: full pages of any sequence hold it,
  /// or loading it from the store is faster (KV-7). Changes nothing.
  virtual int resident(std::span<const TokenId> tokens) const = 0;
  /// Evaluates the items in one step, so that they share one reading of the weights. All or
  /// nothing: on failure every sequence holds what it held. kBadInput for an empty item, a sequence
  /// named twice, a token outside the vocabulary or more tokens than step_tokens(). kWindowFull as
  /// in prefill(). kStopped within the time of a layer if `stop` fires, and at once on the CPU,
  /// because idle work must yield. The step's work is lost then, but for what stopped_tokens() says.
  virtual Result<void> step(std::span<const BatchItem> items, std::stop_token stop = {}) = 0;
  /// Parts of a step of one item without logits, of which a stopped step loses only the one that it
  /// is in; 1: a stopped step is lost.
  virtual int step_parts() const { return 1; }
  /// Tokens after the held ones whose step was stopped and is kept. The same step goes on where it
  /// stopped. Others of this sequence, and whatever needs its memory, give it up.
  virtual int stopped_tokens(SequenceId) const { return 0; }
  /// Evaluates one more token after those that the sequence holds: a generation step.
  Result<void> append(SequenceId sequence, TokenId token) {
    const BatchItem item{.sequence = sequence, .tokens = {&token, 1}, .logits_rows = 1};
    return step({&item, 1});
  }
  /// Logits [V] after the token that is `back` places before the sequence's last. Valid until the
  /// next prefill() or step() of any sequence. Empty if they were not asked for or are no longer
  /// kept.
  virtual std::span<const float> logits(SequenceId sequence, int back = 0) const = 0;
  /// Tokens whose KV the sequence holds now.
  virtual std::span<const TokenId> held(SequenceId sequence) const = 0;

  /// Says whose text the sequence holds, so that its full pages may be stored as that document's
  /// (KV-6). Without it, or with kNone, none are stored.
  virtual void set_source(SequenceId, SourceId) {}
  /// Says that the sequence's prompt begins with text of these documents, too. Its first page is
  /// stored as theirs as well, so that what follows is forgotten with any of them. Has no effect
  /// without a source.
  virtual void set_shown(SequenceId, std::span<const SourceId>) {}
  /// Makes leading full pages of `tokens` resident from the store, for `source`; returns the tokens
  /// that are resident then. Never evaluates. For idle time, because it waits for the disk; it sees
  /// `stop` at once.
  virtual Result<int> restore(std::span<const TokenId> tokens, SourceId, std::stop_token) {
    return resident(tokens);
  }
  /// Hands one page to the store; takes about 0.1 ms. For idle time. kYes: the device
  /// is about to be given back.
  virtual WriteBehind write_behind(Leaving) { return WriteBehind::kNothing; }
  /// A visit of this document begins, or of one without a number (kNone). Its unused pages are kept
  /// `longer` visits longer than others (KV-3).
  virtual void visited(SourceId, int /*longer*/) {}
  /// Drops the pages of a document and all that follow them, except those that open sequences use:
  /// close these first. Their bytes are gone once overwrite_some() says so.
  virtual void forget(SourceId) {}
  /// Overwrites a part of what was forgotten; false once nothing is left. Between two parts a
  /// keystroke may come. Pages that were given up before count, as do those used since, and what is
  /// behind the rows of those in use.
  virtual bool overwrite_some() { return false; }

  /// Whether memory of single pages can go back to the system.
  virtual bool gives_back() const { return false; }
  /// Evicts some pages that no open sequence uses and that are of none of these documents, to the store
  /// if that takes them. Gives their memory to the system; false once none are left. It takes about as
  /// long as overwrite_some(). Only where gives_back().
  virtual bool give_back_some(std::span<const SourceId> /*but*/) { return false; }

  /// Gives the device's memory back until the next call that needs it; sequences hold what they
  /// held.
  virtual void release_device() {}
  /// Whether the CPU stands in for a device that failed. A while later release_device() lets the next
  /// call try that device again.
  virtual bool stands_in() const { return false; }

  virtual KvUsage kv_usage() const = 0;
  virtual std::string device_kind() const = 0;
  virtual std::string device_name() const = 0;
  virtual Digest model() const = 0;  ///< names the model and its weights
};

struct EngineOptions {
  std::size_t kv_budget_bytes = std::size_t{1} << 30;
  /// Names the model in its pages' identities; unset: by Model::digest().
  std::optional<Digest> model_identity = std::nullopt;
  int window_tokens_max = 8192;  ///< lowered to the model's context and the KV budget
  int step_tokens_max = 64;      ///< lowered to the backend's; a stop is looked at between steps
  std::shared_ptr<PageStore> store = nullptr;  ///< where pages go and come from; null: nowhere
};

/// The engine over a real backend, which must have been made with at least one window of pages.
Result<std::unique_ptr<Engine>> make_engine(std::shared_ptr<const Model> model,
                                            std::unique_ptr<Backend> backend,
                                            const EngineOptions& options);

}  // namespace efimd::engine
