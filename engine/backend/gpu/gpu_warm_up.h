#pragma once

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_weights.h"

namespace efimd::engine::gpu {

/// Steps over page 0; run them before the first sequence is opened.
class WarmUp {
 public:
  WarmUp(Backend& backend, int layers, WithOutput with_output)
      : backend_(backend), layers_(layers), with_output_(with_output) {}

  /// Steps of one token, of some, of a short prompt, and after `split_tokens` others. So every
  /// kernel that the model needs is compiled and has run.
  Result<void> run(int split_tokens);
  /// The largest step, up to Backend::step_tokens_max(), that ends within this many milliseconds;
  /// at least 64 tokens.
  Result<int> tokens_within(double ms);

 private:
  /// Whether a step of `count` tokens ends within this many milliseconds.
  Result<bool> is_within(double ms, int count);
  /// Evaluates `count` arbitrary tokens after `position` others.
  Result<void> step(int count, int position = 0);

  Backend& backend_;
  const int layers_;
  const WithOutput with_output_;
};

}  // namespace efimd::engine::gpu
