#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"

namespace efimd::engine {

/// An engine that keeps its sequences if its device goes.
///
///   lost      An operation fails with kDeviceLost or kNoMemory. The next device is opened, holds the
///             sequences, and does the operation again, so that the request is answered. Only the
///             last device's failure reaches the caller.
///   released  release_device() gives device memory back. Pages go to the store as far as it takes
///             them, to the host's memory before the disk. The next operation opens the best device
///             again, also one that failed. If the CPU stands in, it is released only `retry_after`
///             after the failure, because the reason for that may have passed by then.
///
/// KV is not moved. When a sequence is used next, its tokens are reused from the store or evaluated
/// again. The window and a step's size are those of the device in use.
///
/// Thread: engine.  Owns: the engine over the device in use.
class LastingEngine final : public Engine {
 public:
  /// Opens the best device that has not failed since the last call with null. `lost` is the error
  /// of the device in use, null if that did not fail. Gives an error if no device is left.
  using Open = std::function<Result<std::unique_ptr<Engine>>(const Error* lost)>;
  static constexpr std::chrono::seconds kRetryAfter = std::chrono::minutes(10);

  /// `tokenizer` and `store` belong to the engines that `open` makes, too, and outlive them all.
  static Result<std::unique_ptr<LastingEngine>> make(
      std::shared_ptr<const Tokenizer> tokenizer, Open open,
      std::shared_ptr<PageStore> store = nullptr, std::chrono::seconds retry_after = kRetryAfter);

  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  bool fragment_trained() const override { return fragment_trained_; }
  int window_tokens() const override { return window_tokens_; }
  int step_tokens() const override { return step_tokens_; }
  int ample_tokens() const override { return ample_tokens_; }
  SequenceId open_sequence() override;
  void close_sequence(SequenceId sequence) override;
  Result<SequenceId> fork(SequenceId sequence) override;
  Result<PromptCost> prefill(SequenceId sequence, std::span<const TokenId> tokens,
                             PrefillOptions options) override;
  Result<int> rewind(SequenceId sequence, std::span<const TokenId> tokens) override;
  int resident(std::span<const TokenId> tokens) const override;
  Result<void> step(std::span<const BatchItem> items, std::stop_token stop) override;
  int step_parts() const override { return engine_ ? engine_->step_parts() : 1; }
  int stopped_tokens(SequenceId id) const override;
  std::span<const float> logits(SequenceId sequence, int back) const override;
  std::span<const TokenId> held(SequenceId sequence) const override;
  void set_source(SequenceId sequence, SourceId source) override;
  void set_shown(SequenceId sequence, std::span<const SourceId> shown) override;
  Result<int> restore(std::span<const TokenId> tokens, SourceId source,
                      std::stop_token stop) override;
  WriteBehind write_behind(Leaving leaving) override;
  void visited(SourceId source, int longer) override;
  void forget(SourceId source) override;
  bool overwrite_some() override;
  bool gives_back() const override { return engine_ && engine_->gives_back(); }
  bool give_back_some(std::span<const SourceId> but) override {
    return engine_ && engine_->give_back_some(but);
  }
  void release_device() override;
  bool stands_in() const override { return lost_at_.has_value(); }
  KvUsage kv_usage() const override;
  std::string device_kind() const override { return device_kind_; }
  std::string device_name() const override { return device_name_; }
  Digest model() const override { return model_; }

 private:
  struct Sequence {
    SequenceId inner{};  ///< of the engine in use; open where `open` says so
    bool open = false;
    SourceId source = SourceId::kNone;
    std::vector<SourceId> shown = {};
    std::vector<TokenId> tokens;  ///< held when it was closed, so it must hold them again
  };

  LastingEngine(std::shared_ptr<const Tokenizer> tokenizer, Open open,
                std::shared_ptr<PageStore> store, std::chrono::seconds retry_after)
      : tokenizer_(std::move(tokenizer)),
        open_(std::move(open)),
        store_(std::move(store)),
        retry_after_(retry_after) {}
  Result<void> use_device(const Error* lost);
  /// Remembers the tokens of the sequences and drops the engine.
  void close_engine();
  Sequence* find(SequenceId sequence);
  const Sequence* find(SequenceId sequence) const;
  /// Opens the sequence in the engine in use.
  void ensure_open(Sequence& sequence);
  /// The same, with the tokens that it held. kStopped between steps; they are still its tokens then.
  Result<void> ensure_held(Sequence& sequence, const std::stop_token& stop);
  /// Calls operation(), which returns a Result; if its device fails, calls it again on the next.
  template <class Operation>
  auto lasting(const Operation& operation) -> decltype(operation());

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const Open open_;
  const std::shared_ptr<PageStore> store_;  ///< may be null
  const std::chrono::seconds retry_after_;
  /// The time at which the CPU began to stand in.
  std::optional<std::chrono::steady_clock::time_point> lost_at_;
  std::unique_ptr<Engine> engine_;  ///< null while the device is released
  bool fragment_trained_ = false;
  int window_tokens_ = 0;
  int ample_tokens_ = 0;
  int step_tokens_ = 0;
  std::string device_kind_, device_name_;
  Digest model_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<SequenceId, Sequence> sequences_;
};

}  // namespace efimd::engine
