#pragma once

#include "daemon/prompt/choose.h"

namespace efimd::completion {

/// What the device's speed allows.
struct Budgets {
  int prompt_tokens_max = 0;  ///< most tokens of a prompt, at most the engine's window
  int near_tokens_max = 0;    ///< most tokens of a first prompt that shows little (A-10)
  prompt::StepCosts costs;    ///< no points where nothing was measured: everything is cheap then
};

}  // namespace efimd::completion
