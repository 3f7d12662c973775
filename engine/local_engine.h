#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/engine.h"
#include "engine/kv/kv_pool.h"
#include "engine/kv/kv_sequence.h"
#include "engine/kv/store_tier.h"
#include "engine/logits_rows.h"

namespace efimd::engine {

/// The facts of a model that the engine needs in addition to its tokenizer.
struct ModelFacts {
  Digest digest = {};
  int layers = 0;
  int vocabulary = 0;
  int context_tokens = 0;
  bool fragment_trained = false;
  int soon_tokens =
      0;  ///< after which a step is not much longer, see Engine::ample_tokens(); 0: any
  std::optional<PageKey> page_key = std::nullopt;  ///< KV-1
};

/// As make_engine() of engine.h, with pages under this key.
Result<std::unique_ptr<Engine>> make_engine(std::shared_ptr<const Model> model,
                                            std::unique_ptr<Backend> backend,
                                            const EngineOptions& options,
                                            const std::optional<PageKey>& key);

/// The engine over a Backend: pages, sequences, steps.
///
/// Thread: engine.  Owns: the backend and every sequence.
/// Limits: kLogitsKeptMax sequences keep their last logits, at most kLogitsRowsMax rows of V floats
/// each. An older one evaluates its last tokens again.
class LocalEngine final : public Engine {
 public:
  static constexpr std::size_t kLogitsKeptMax = 8;

  /// kNoMemory if the budget or the backend has no page at all.
  static Result<std::unique_ptr<LocalEngine>> make(const ModelFacts& facts,
                                                   std::shared_ptr<const Tokenizer> tokenizer,
                                                   std::unique_ptr<Backend> backend,
                                                   const EngineOptions& options);
  ~LocalEngine() override;

  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  bool fragment_trained() const override { return facts_.fragment_trained; }
  int window_tokens() const override { return window_tokens_; }
  int step_tokens() const override { return step_tokens_; }
  int ample_tokens() const override;
  SequenceId open_sequence() override;
  void close_sequence(SequenceId sequence) override {
    give_up_stopped(sequence);
    std::erase(logits_kept_, sequence);
    sequences_.erase(sequence);
  }
  Result<SequenceId> fork(SequenceId sequence) override;
  Result<PromptCost> prefill(SequenceId sequence, std::span<const TokenId> tokens,
                             PrefillOptions options) override;
  Result<int> rewind(SequenceId sequence, std::span<const TokenId> tokens) override;
  int resident(std::span<const TokenId> tokens) const override;
  Result<void> step(std::span<const BatchItem> items, std::stop_token stop = {}) override;
  int step_parts() const override { return backend_->goes_on_behind_layers() ? facts_.layers : 1; }
  int stopped_tokens(SequenceId sequence) const override;
  std::span<const float> logits(SequenceId sequence, int back = 0) const override;
  std::span<const TokenId> held(SequenceId sequence) const override;
  void set_source(SequenceId sequence, SourceId source) override;
  void set_shown(SequenceId sequence, std::span<const SourceId> shown) override {
    if (Sequence* known = find(sequence)) known->kv.set_shown(shown);
  }
  Result<int> restore(std::span<const TokenId> tokens, SourceId source,
                      std::stop_token stop) override;
  WriteBehind write_behind(Leaving leaving) override { return tier_.write_one(leaving); }
  void visited(SourceId source, int longer) override {
    pool_.visited(source, longer);
    if (store_) store_->visited(source, longer);
  }
  void forget(SourceId source) override {
    pool_.forget(source);
    forgot_ = true;
    if (store_) store_->forget(source);
  }
  bool overwrite_some() override;
  bool gives_back() const override;
  bool give_back_some(std::span<const SourceId> but) override;
  KvUsage kv_usage() const override;
  std::string device_kind() const override;
  std::string device_name() const override;
  Digest model() const override { return facts_.digest; }

  const KvPool& pool() const { return pool_; }

 private:
  struct Sequence {
    Sequence(KvPool& pool, Backend& backend, StoreTier& tier)
        : kv(pool, backend, tier),
          prompt_logits(kLogitsRowsKept),
          ahead_logits(kLogitsRowsKept),
          logits(kLogitsRowsKept) {}
    void leave_leftovers() {
      kv.leave_leftovers();
      drop_logits_from(kv.size());
    }
    void drop_logits_from(int position) {
      for (LogitsRows* const rows : {&prompt_logits, &ahead_logits, &logits})
        rows->drop_from(position);
    }
    KvSequence kv;
    /// After the last tokens of the prompt. Generating does not push them out, because the next
    /// keystroke's prompt ends near there.
    LogitsRows prompt_logits;
    LogitsRows ahead_logits;           ///< the same of PrefillOptions::ahead
    LogitsRows logits;                 ///< after the last tokens of later steps
    LogitsRows* of_prefill = nullptr;  ///< where the rows of prefill()'s steps go
    int restored = 0;                  ///< tokens from the store that no PromptCost has counted yet
  };

  LocalEngine(const ModelFacts& facts, std::shared_ptr<const Tokenizer> tokenizer,
              std::unique_ptr<Backend> backend, int page_count, const EngineOptions& options);

  Sequence* find(SequenceId sequence);
  const Sequence* find(SequenceId sequence) const;
  Result<void> check_tokens(std::span<const TokenId> tokens) const;
  Result<void> check_items(std::span<const BatchItem> items) const;
  Result<void> check_window(std::size_t tokens) const;
  Result<void> check_prompt(const Sequence* sequence, std::span<const TokenId> tokens) const;
  /// Leaves the sequence with a prefix of `tokens`, as long as KV allows. The logits from
  /// `logits_begin` on are then at hand or will be evaluated. Makes room for the rest.
  Result<void> prepare(Sequence& sequence, std::span<const TokenId> tokens, int logits_begin,
                       const std::stop_token& stop);
  Result<PromptCost> evaluate_prompt(SequenceId id, Sequence& sequence,
                                     std::span<const TokenId> tokens, int logits_begin,
                                     const std::stop_token& stop);
  Result<int> reuse(Sequence& sequence, std::span<const TokenId> tokens,
                    const std::stop_token& stop);
  Result<void> run_step(std::span<const BatchItem> items, const std::stop_token& stop,
                        StoppedStep* stopped);
  /// Pages for the items; a step that was stopped is given up for them.
  Result<void> reserve(std::span<const BatchItem> items);
  /// Whether the step that was stopped is the next one on the way to `tokens`.
  bool goes_on_with(SequenceId id, std::span<const TokenId> tokens) const;
  void give_up_stopped();
  void give_up_stopped(SequenceId id) {
    if (stopped_ && stopped_->sequence == id) give_up_stopped();
  }
  static std::span<const float> row_at(const Sequence& sequence, int position);
  void keep_logits(SequenceId id, int first_position, int rows, std::span<const float> logits);

  ModelFacts facts_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<PageStore> store_;
  KvPool pool_;
  StoreTier tier_;
  int window_tokens_;
  int step_tokens_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<SequenceId, Sequence> sequences_;
  std::vector<SequenceId> logits_kept_;  ///< oldest first
  /// A step that was stopped behind a layer. Its sequence has the pages that it needs.
  struct Stopped {
    SequenceId sequence;
    std::vector<TokenId> tokens;
    StoppedStep step;
  };
  std::optional<Stopped> stopped_;
  bool forgot_ = false;           ///< since overwrite_some() set apart what that left
  std::vector<std::byte> zeros_;  ///< as many as a page has bytes, once they were wanted
};

}  // namespace efimd::engine
