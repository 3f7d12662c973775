#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/completion.h"

namespace efimd::bench {

/// Numbers of one kind, and what is said of them. All 0 without any.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  void add(const Samples& others) {
    values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  }
  std::size_t count() const { return values_.size(); }
  double sum() const;
  double mean() const;
  /// The smallest value that at least `percent` of them do not exceed.
  double percentile(double percent) const;

 private:
  std::vector<double> values_;
};

/// Where the median of what was sampled lies, with 95 % confidence, whatever its distribution (by
/// the ranks of a binomial). Everything from the least to the largest value for fewer than 6.
struct Interval {
  double low = 0, high = 0;
};
Interval median_interval(std::vector<double> values);

/// Milliseconds from the request to the first token of its answer; to the answer where no token was
/// generated for it.
double first_ms(const completion::Receipt& receipt);
double ms_since(std::chrono::steady_clock::time_point begin);
/// 0 of none.
double mean_of(const std::vector<double>& values);
/// 0 of nothing.
double percent_of(std::size_t part, std::size_t whole);
/// "12.3 times", or "-" where there is nothing to compare with.
std::string times_text(double value, double base);
/// "-47 %", "+88 %": `value` against `base`.
std::string change_text(double value, double base);

}  // namespace efimd::bench
