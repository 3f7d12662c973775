#pragma once

#include <chrono>
#include <span>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "engine/types.h"

namespace efimd::engine {
class Backend;
class Tokenizer;
}  // namespace efimd::engine

namespace efimd::service {

/// How a type of KV changes a model's output compared with f16, over some prompts.
struct KvError {
  int places = 0;         ///< tokens of the prompts after which distributions were compared
  int same_next = 0;      ///< of these, places with the same likeliest token
  double divergence = 0;  ///< mean Kullback-Leibler divergence from f16's distribution
  int completions = 0;    ///< chosen greedily, kTokens or up to the model's own end
  int same_completions = 0;

  /// A line or a part of one.
  static constexpr int kTokens = 8;
  /// The loss that is accepted: one next token in fifty, a divergence of a hundredth, a completion
  /// in four.
  static constexpr double kSameNextMin = 0.98;
  static constexpr double kDivergenceMax = 0.01;
  static constexpr double kSameCompletionsMin = 0.75;
  /// Whether the loss is small enough to use the type. False if nothing was compared.
  bool is_small() const;
};

struct KvErrorLimits {
  std::stop_token stop = {};
  /// Prompts that have not begun by then are left out, except the first.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// Compares `other` with `exact`, two devices of one model. Each must have pages for the longest
/// prompt and kTokens more. Evaluates every prompt on both, which takes seconds on a CPU.
///
/// Thread: that of both devices. Fails as the devices do, and with kStopped.
Result<KvError> measure_kv_error(engine::Backend& exact, engine::Backend& other, int layers,
                                 const engine::Tokenizer& tokenizer,
                                 std::span<const std::vector<engine::TokenId>> prompts,
                                 const KvErrorLimits& limits);

}  // namespace efimd::service
