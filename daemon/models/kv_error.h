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

/// What a type of KV changes of what a model says, against f16, over some prompts.
struct KvError {
  int places = 0;         ///< tokens of the prompts behind which distributions were compared
  int same_next = 0;      ///< of them those with the same likeliest token
  double divergence = 0;  ///< mean Kullback-Leibler divergence from f16's distribution
  int completions = 0;    ///< chosen greedily, kTokens or up to the model's own end
  int same_completions = 0;

  /// A line or a part of one.
  static constexpr int kTokens = 8;
  /// What may be lost: one next token in fifty, a divergence of a hundredth, a completion in four.
  static constexpr double kSameNextMin = 0.98;
  static constexpr double kDivergenceMax = 0.01;
  static constexpr double kSameCompletionsMin = 0.75;
  /// Whether that is little enough to use it. False where nothing was compared.
  bool is_small() const;
};

struct KvErrorLimits {
  std::stop_token stop = {};
  /// Prompts that are not begun by then are left out, but for the first.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// Compares `other` with `exact`, two devices of one model of which each must have pages for the
/// longest prompt and kTokens more. Evaluates every prompt on both: seconds on a CPU.
///
/// Thread: the one of both devices. Fails as the devices do, and with kStopped.
Result<KvError> measure_kv_error(engine::Backend& exact, engine::Backend& other, int layers,
                                 const engine::Tokenizer& tokenizer,
                                 std::span<const std::vector<engine::TokenId>> prompts,
                                 const KvErrorLimits& limits);

}  // namespace efimd::service
