#pragma once

#include <functional>

#include "tests/support/simt.h"

namespace efimd::simt {

/// In which order the warps of a block, and the threads of a warp, run from barrier to barrier; copies without waiting are
/// made late in the one, at once in the other. What depends on it is a race.
enum class Order { kForward, kBackward };

/// Runs `kernel` once for each thread. Ends the process, saying why, where a barrier is not reached by all.
void run_grid(Dim blocks, Dim threads, Order order, const std::function<void()>& kernel);

}  // namespace efimd::simt
