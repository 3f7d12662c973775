#pragma once

#include <functional>

#include "tests/support/simt.h"

namespace efimd::simt {

/// The order in which the warps of a block, and the threads of a warp, run from barrier to barrier.
/// One order makes copies without waiting late, the other at once. A result that depends on it is a
/// race.
enum class Order { kForward, kBackward };

struct Grid {
  Dim blocks, threads;
  Order order;
  std::function<void()> kernel;  ///< of a thread
};

/// Runs the kernel once for each thread. Ends the process with the reason if a barrier is not
/// reached by all.
void run_grid(const Grid& grid);

}  // namespace efimd::simt
