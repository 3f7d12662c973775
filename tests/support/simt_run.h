#pragma once

#include <functional>

#include "tests/support/simt.h"

namespace efimd::simt {

/// In which order the warps of a block, and the threads of a warp, run from barrier to barrier; copies without waiting are
/// made late in the one, at once in the other. What depends on it is a race.
enum class Order { kForward, kBackward };

struct Grid {
  Dim blocks, threads;
  Order order;
  std::function<void()> kernel;  ///< of a thread
};

/// Runs the kernel once for each thread. Ends the process, saying why, where a barrier is not reached by all, or a thread
/// ends without awaiting its operands.
void run_grid(const Grid& grid);

/// Runs the threads of the first block up to where they await their operands, in front of a kernel that writes these:
/// whoever touches them earlier works with old bytes. run_grid() of this grid, which has to come, goes on from there.
void begin_early(const Grid& grid);

}  // namespace efimd::simt
