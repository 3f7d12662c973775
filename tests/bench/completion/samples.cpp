#include "tests/bench/completion/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace efimd::bench {

double Samples::sum() const { return std::accumulate(values_.begin(), values_.end(), 0.0); }

double Samples::mean() const { return mean_of(values_); }

double Samples::percentile(double percent) const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  const std::size_t at = std::clamp<std::size_t>(rank, 1, sorted.size()) - 1;
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(at));
  return sorted[at];
}

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

double percent_of(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

Interval median_interval(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  const double rank = std::floor(count / 2 - 0.98 * std::sqrt(count));
  const std::size_t at = rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1;
  return {values[at], values[values.size() - 1 - at]};
}

double first_ms(const completion::Receipt& receipt) {
  return receipt.first_token_ms > 0 ? receipt.first_token_ms : receipt.total_ms;
}

std::string times_text(double value, double base) {
  return base > 0 ? fmt::format("{:.1f} times", value / base) : "-";
}

std::string change_text(double value, double base) {
  return base > 0 ? fmt::format("{:+.0f} %", (value / base - 1) * 100) : "-";
}

}  // namespace efimd::bench
