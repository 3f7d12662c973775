#pragma once

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace efimd::test {

/// A value and how far from it a result may lie.
struct Expected {
  double value;
  double tolerance;
};

/// Fails with the worst index and both values; a NaN result is infinitely wrong.
inline void check_close(std::span<const float> actual, std::span<const Expected> expected) {
  REQUIRE(actual.size() == expected.size());
  std::size_t worst = 0;
  double worst_share = 0;  // of the tolerance
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::fabs(static_cast<double>(actual[i]) - expected[i].value);
    const double share = std::isnan(error) ? INFINITY
                         : error == 0      ? 0
                                           : error / expected[i].tolerance;
    if (share > worst_share) {
      worst_share = share;
      worst = i;
    }
  }
  INFO("worst at " << worst << " of " << actual.size() << ": got " << actual[worst] << ", expected "
                   << expected[worst].value << " within " << expected[worst].tolerance);
  CHECK(worst_share <= 1);
}

/// Fails with the first index whose bits differ.
inline void check_same_bits(std::span<const float> actual, std::span<const float> expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(actual[i]) == std::bit_cast<std::uint32_t>(expected[i]))
      continue;
    FAIL_CHECK("bits differ first at " << i << " of " << actual.size() << ": got " << actual[i]
                                       << ", expected " << expected[i]);
    return;
  }
  SUCCEED();
}

}  // namespace efimd::test
