#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "daemon/prompt/choose.h"

namespace efimd::completion {

/// The limits that follow from the device's speed and the user's settings.
struct Budgets {
  int prompt_tokens_max = 0;  ///< of the first window: most tokens of a prompt (A-4)
  int near_tokens_max = 0;    ///< most tokens of a first prompt that shows little (A-10)
  int wide_tokens_max = 0;    ///< of the window: tokens of text in it; 0: the first one is all
  prompt::StepCosts costs;    ///< no points where nothing was measured
  bool are_fixed = true;      ///< nothing is learned of what steps cost
  /// How long a text must stand still before idle time looks past the cursor and at other places.
  std::chrono::milliseconds settle{1000};
  /// CPU time that widening may take for one document; each request gives some of it back.
  double widening_cpu_s_max = 240;

  /// Of other files in a prompt.
  std::size_t head_tokens_max() const {
    return static_cast<std::size_t>(std::max({0, wide_tokens_max, prompt_tokens_max})) * 15 / 100;
  }
};

}  // namespace efimd::completion
