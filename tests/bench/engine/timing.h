#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace efimd::bench {

/// Seconds that `work` takes.
template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Median seconds of `work`, after one run that is not counted: at least three runs, more until
/// `budget_s` is spent. A stolen core shows up in single runs, not in the median.
template <class Work>
double median_seconds(double budget_s, const Work& work) {
  work();
  std::vector<double> runs;
  for (double spent = 0; runs.size() < 3 || spent < budget_s; spent += runs.back())
    runs.push_back(seconds_of(work));
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end());
  return *middle;
}

}  // namespace efimd::bench
