#pragma once

#include <chrono>

#include "daemon/prompt/choose.h"

namespace efimd::completion {

/// What the device's speed and the user's settings allow.
struct Budgets {
  int prompt_tokens_max = 0;  ///< most tokens of a prompt, at most the engine's window
  int near_tokens_max = 0;    ///< most tokens of a first prompt that shows little (A-10)
  prompt::StepCosts costs;    ///< no points where nothing was measured
  int cold_prompt_ms = 0;     ///< what the others were made from; 0: they are the user's
  /// How long a text must stand still before idle time looks behind the cursor and at other places.
  std::chrono::milliseconds settle{1000};

  bool are_fixed() const { return cold_prompt_ms == 0; }
};

}  // namespace efimd::completion
