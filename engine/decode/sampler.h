#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "engine/types.h"

namespace efimd::engine {

struct SamplingOptions {
  float temperature = 0.0F;  ///< 0: greedy (ties go to the smaller id)
  float top_p = 1.0F;        ///< smallest set of tokens whose probability reaches it
  int top_k = 0;             ///< 0: all
  std::uint64_t seed = 0;
};

/// Chooses the next token from logits. The same options and logits give the same tokens on every machine.
class Sampler {
 public:
  explicit Sampler(SamplingOptions options);
  /// `logits` is [V]; NaN counts as -inf.
  TokenId choose(std::span<const float> logits);

 private:
  SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<std::pair<float, TokenId>> candidates_;
};

}  // namespace efimd::engine
