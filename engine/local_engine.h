#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/kv/kv_pool.h"
#include "engine/kv/kv_sequence.h"

namespace efimd::engine {

/// What the engine needs to know of a model beside its tokenizer.
struct ModelFacts {
  Digest digest = {};
  int layers = 0;
  int vocabulary = 0;
  int context_tokens = 0;
};

/// Tokens to evaluate behind what a sequence holds.
struct BatchItem {
  SequenceId sequence{};
  std::span<const TokenId> tokens;
  bool logits_wanted = false;  ///< of the last token
};

/// The engine over a Backend: pages, sequences, steps.
///
/// Thread: engine.  Owns: the backend and every sequence.
/// Limits: kLogitsKeptMax sequences keep their last logits (V floats each); an older one evaluates
/// its last token again.
class LocalEngine final : public Engine {
 public:
  static constexpr std::size_t kLogitsKeptMax = 8;

  /// kNoMemory when the budget or the backend has no page at all.
  static Result<std::unique_ptr<LocalEngine>> make(const ModelFacts& facts,
                                                   std::shared_ptr<const Tokenizer> tokenizer,
                                                   std::unique_ptr<Backend> backend,
                                                   const EngineOptions& options);
  ~LocalEngine() override;

  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  int window_tokens() const override { return window_tokens_; }
  SequenceId open_sequence() override;
  void close_sequence(SequenceId sequence) override;
  Result<PromptCost> hold(SequenceId sequence, std::span<const TokenId> tokens,
                          std::stop_token stop) override;
  Result<void> append(SequenceId sequence, TokenId token) override;
  std::span<const float> logits(SequenceId sequence) const override;
  std::span<const TokenId> held(SequenceId sequence) const override;
  KvUsage kv_usage() const override;
  std::string device_kind() const override;
  std::string device_name() const override;

  /// Evaluates the items in one step, so that they share one reading of the weights. All or
  /// nothing: on failure every sequence holds what it held. kBadInput for an empty item, a sequence
  /// named twice, a token outside the vocabulary or more tokens than step_tokens().
  Result<void> evaluate(std::span<const BatchItem> items);
  int step_tokens() const { return step_tokens_; }

  const KvPool& pool() const { return pool_; }

 private:
  struct Sequence {
    Sequence(KvPool& pool, Backend& backend) : kv(pool, backend) {}
    KvSequence kv;
    std::vector<float> logits;  ///< behind the last held token, or empty
  };

  LocalEngine(const ModelFacts& facts, std::shared_ptr<const Tokenizer> tokenizer,
              std::unique_ptr<Backend> backend, int page_count, const EngineOptions& options);

  Sequence* find(SequenceId sequence);
  const Sequence* find(SequenceId sequence) const;
  Result<void> check_tokens(std::span<const TokenId> tokens) const;
  Result<void> check_items(std::span<const BatchItem> items) const;
  Result<void> check_window(std::size_t tokens) const;
  /// Leaves the sequence with a proper part of `tokens`, as long as there is KV for, and room for
  /// the rest.
  Result<void> prepare(Sequence& sequence, std::span<const TokenId> tokens);
  Result<void> run_step(std::span<const BatchItem> items);
  void keep_logits(SequenceId id, std::span<const float> logits);

  ModelFacts facts_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Backend> backend_;
  KvPool pool_;
  int window_tokens_;
  int step_tokens_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<SequenceId, Sequence> sequences_;
  std::vector<SequenceId> logits_kept_;  ///< oldest first
};

}  // namespace efimd::engine
