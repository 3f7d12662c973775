#pragma once

#include <functional>

#include "tests/support/simt.h"

namespace efimd::simt {

/// In which order the threads of a block run between barriers. What depends on it is a race.
enum class Order { kForward, kBackward };

/// Runs `kernel` once for each thread. Ends the process, saying why, where a barrier is not reached by all.
void run_grid(Dim blocks, Dim threads, Order order, const std::function<void()>& kernel);

}  // namespace efimd::simt
