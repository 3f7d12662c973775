#pragma once

#include <cstddef>
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

/// The greatest of `logits`, NaN left out; -inf for none.
float greatest(std::span<const float> logits);

/// Chooses the next token from logits. The same options and logits give the same tokens on every
/// machine.
class Sampler {
 public:
  explicit Sampler(SamplingOptions options);
  /// `logits` is [V]; NaN counts as -inf. kNoToken when no logit is above -inf: nothing may be
  /// chosen, generation ends.
  TokenId choose(std::span<const float> logits);
  /// The same with all but `allowed` (each once) masked out. Ids outside `logits` count as masked.
  TokenId choose_among(std::span<const float> logits, std::span<const TokenId> allowed);

 private:
  struct Candidate {
    float logit = 0;
    TokenId id = kNoToken;
    std::uint64_t weight = 0;  ///< probability in units of 2^-40 of the best token's
  };
  /// The best first; ties go to the smaller id.
  static bool better(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
  bool is_greedy() const { return !(options_.temperature > 0.0F) || options_.top_k == 1; }
  void collect(std::span<const float> logits, float best);
  void weigh(float best);
  void keep_top_p();
  TokenId draw();

  SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;
};

}  // namespace efimd::engine
