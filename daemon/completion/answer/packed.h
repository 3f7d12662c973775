#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/engine.h"

namespace efimd::completion {

/// A sequence, and the prompt that it shall hold.
struct PackedPrompt {
  /// kNoRoom: the KV memory is too small for it beside the others.
  enum class State { kWaiting, kWhole, kNoRoom };

  engine::SequenceId sequence{};
  std::vector<engine::TokenId> tokens;
  State state = State::kWaiting;
};

/// How steps of several prompts are made.
struct Packing {
  std::function<int()> step_tokens;          ///< most tokens of the next step
  std::function<void(int, double)> learned;  ///< what a step of so many tokens took, ms
};

/// Evaluates several prompts in steps that they share, so that no step is cut short at the end of a
/// small one (Prepacking, arXiv 2404.09529). A prompt that begins like one before it waits until that
/// one has evaluated what both begin with, and then takes its pages (BatchLLM, arXiv 2412.03594).
///
/// False when `stop` fired or the device failed; what was evaluated stays.
bool evaluate_packed(engine::Engine& engine, std::span<PackedPrompt> prompts,
                     const Packing& packing, const std::stop_token& stop);

}  // namespace efimd::completion
