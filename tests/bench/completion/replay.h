#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "tests/bench/completion/baseline.h"
#include "tests/bench/completion/bench_service.h"
#include "tests/bench/completion/trace.h"

namespace efimd::bench {

struct ReplayOptions {
  int tokens_max = 8;
  std::chrono::milliseconds pause{0};  ///< before each event
};

/// One event that asked, and what its answer cost.
struct Answered {
  std::string kind;
  completion::Receipt receipt;
};

/// Applies the events of a parsed trace in order, each answer awaited before the next. Generation
/// ends at the model's own end or at tokens_max, so that treatments generate alike.
Result<std::vector<Answered>> replay(BenchService& bench, std::span<const TraceEvent> trace,
                                     const ReplayOptions& options);
Result<std::vector<Answered>> replay(Baseline& baseline, std::span<const TraceEvent> trace,
                                     const ReplayOptions& options);

}  // namespace efimd::bench
