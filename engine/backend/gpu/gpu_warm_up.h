#pragma once

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_weights.h"

namespace efimd::engine::gpu {

/// Steps over page 0, before the first sequence is opened.
class WarmUp {
 public:
  WarmUp(Backend& backend, int layers, WithOutput with_output)
      : backend_(backend), layers_(layers), with_output_(with_output) {}

  /// Steps of one token, of some, of a short prompt, and behind `split_tokens` others: every kernel that the model needs is
  /// compiled, and known to run.
  Result<void> run(int split_tokens);
  /// Of Backend::step_tokens_max() as many as are over within so many milliseconds, but not fewer than 64.
  Result<int> tokens_within(double ms);

 private:
  /// Evaluates `count` tokens of nothing behind `position` others.
  Result<void> step(int count, int position = 0);

  Backend& backend_;
  const int layers_;
  const WithOutput with_output_;
};

}  // namespace efimd::engine::gpu
