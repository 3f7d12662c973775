#include "daemon/recall/chance.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <random>

#include "daemon/recall/chance_table.h"

namespace {

using namespace efimd::recall;

/// Unit by unit, as training/recall_net.py says.
double said_by(const ChanceNet& net, const Features& features) {
  double odds = 0;
  for (std::size_t i = 0; i < kFeatures; ++i)
    odds += static_cast<double>(net.straight[i]) * static_cast<double>(features[i]);
  for (std::size_t unit = 0; unit < kHidden; ++unit) {
    double sum = 0;
    for (std::size_t i = 0; i < kFeatures; ++i)
      sum += static_cast<double>(net.hidden[i][unit]) * static_cast<double>(features[i]);
    odds += std::max(0.0, sum) * static_cast<double>(net.out[unit]);
  }
  return chance_of_odds(odds);
}

/// A text that many places say, near and far.
Support strong_support() {
  return {.weight = 4000,
          .weight_others = 10,
          .agreed = 120,
          .typed = 12,
          .votes = 6,
          .sources = 3,
          .same_file = true,
          .distance_lines = 6,
          .lines_above = 2,
          .fits_below = true,
          .bytes = 8,
          .to_line_end = true};
}

Support weak_support() {
  return {.weight = 9,
          .weight_others = 800,
          .agreed = 4,
          .typed = 4,
          .votes = 1,
          .sources = 1,
          .bytes = 40,
          .weight_nothing = 200};
}

}  // namespace

TEST_CASE("a chance is what the fitted network of its place says") {
  std::mt19937 random(3);
  std::normal_distribution<float> draw(1, 3);
  for (const Place place : {Place::kInside, Place::kStart, Place::kFinished})
    for (int i = 0; i < 200; ++i) {
      Features features{1};
      std::generate(features.begin() + 1, features.end(), [&] { return draw(random); });
      const ChanceNet& net = kChanceNets[static_cast<std::size_t>(place)];
      CHECK(std::abs(chance_of(features, place) - said_by(net, features)) < 1e-3);
    }
}

TEST_CASE("what many places say is likely, what one far place says is not") {
  for (const Place place : {Place::kInside, Place::kStart, Place::kFinished}) {
    CHECK(chance_of(features_of(strong_support()), place) > cut_of(place).show);
    CHECK(chance_of(features_of(weak_support()), place) < cut_of(place).hold);
  }
}
