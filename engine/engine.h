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
#include "engine/tokenizer/tokenizer.h"
#include "engine/types.h"

namespace efimd::engine {

class Backend;
class Model;

/// Names a live sequence; never reused.
enum class SequenceId : std::uint64_t {};

/// What holding a prompt cost.
struct PromptCost {
  int reused = 0;     ///< leading tokens whose KV was there
  int evaluated = 0;  ///< reused + evaluated == the prompt's tokens
};

/// What the KV room holds, for the status.
struct KvUsage {
  std::size_t budget_bytes = 0;
  std::size_t used_bytes = 0;  ///< pages that hold tokens, referenced or cached
};

/// A model that evaluates token sequences and keeps their KV.
///
/// Thread: one (the engine thread); a stop token may fire from any.
/// The daemon sees only this face; tests put a scripted engine behind it.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const Tokenizer& tokenizer() const = 0;
  virtual int window_tokens() const = 0;  ///< most tokens that one sequence may hold

  virtual SequenceId open_sequence() = 0;
  /// Its full pages stay findable by content until they are evicted (KV-3).
  virtual void close_sequence(SequenceId sequence) = 0;

  /// Makes the sequence hold exactly `tokens` (not empty) and its last token's logits ready. Reuses
  /// the sequence's own leading tokens, then resident pages with the same identity (KV-1), and
  /// evaluates the rest in steps. A prompt that is in KV whole costs its last token, or nothing
  /// while its logits are at hand. kStopped between steps when `stop` fires: what was evaluated
  /// stays. kWindowFull past window_tokens(), and when other sequences hold too much of the KV
  /// budget: close some and hold again.
  virtual Result<PromptCost> hold(SequenceId sequence, std::span<const TokenId> tokens,
                                  std::stop_token stop) = 0;
  /// Evaluates one more token behind what the sequence holds: a generation step. On failure nothing
  /// changes but the logits, which are gone.
  virtual Result<void> append(SequenceId sequence, TokenId token) = 0;
  /// Logits behind the sequence's last token, [V]; valid until the next hold() or append() of any
  /// sequence. Empty after a hold() that failed or was stopped.
  virtual std::span<const float> logits(SequenceId sequence) const = 0;
  /// Tokens whose KV the sequence holds now.
  virtual std::span<const TokenId> held(SequenceId sequence) const = 0;

  virtual KvUsage kv_usage() const = 0;
  virtual std::string device_kind() const = 0;
  virtual std::string device_name() const = 0;
};

struct EngineOptions {
  std::size_t kv_budget_bytes = std::size_t{1} << 30;
  int window_tokens_max = 8192;  ///< lowered to the model's context and the KV budget
  int step_tokens_max = 64;      ///< lowered to the backend's; a stop is looked at between steps
};

/// The engine over a real backend, which must have been made with at least one window of pages.
Result<std::unique_ptr<Engine>> make_engine(std::shared_ptr<const Model> model,
                                            std::unique_ptr<Backend> backend,
                                            const EngineOptions& options);

}  // namespace efimd::engine
