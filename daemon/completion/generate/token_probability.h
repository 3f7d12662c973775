#pragma once

#include <span>

#include "engine/types.h"

namespace efimd::completion {

/// What all probabilities of one row of logits share. Costs 0.05 to 0.3 ms for 151,936 logits, depending
/// on the CPU.
struct Softmax {
  float best = 0;  ///< the greatest logit
  float sum = 0;   ///< of the exponentials below it
};
Softmax softmax_of(std::span<const float> logits);

/// The probability of `chosen` among `logits` ([V], any temperature 1 distribution; -inf and NaN
/// have none), 0 to 1. `softmax` is that of the logits.
double probability_of(engine::TokenId chosen, std::span<const float> logits,
                      const Softmax& softmax);
double probability_of(engine::TokenId chosen, std::span<const float> logits);

/// The same among `allowed` alone.
double probability_among(engine::TokenId chosen, std::span<const float> logits,
                         std::span<const engine::TokenId> allowed);

}  // namespace efimd::completion
