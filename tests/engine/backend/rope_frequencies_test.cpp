#include "engine/backend/rope_frequencies.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "tests/engine/backend/memory_model.h"

namespace efimd::test {
namespace {

using engine::rope_frequencies;

engine::ModelShape shape_of_64() {
  engine::ModelShape shape = tiny_shape();
  shape.rope_width = 64;
  return shape;
}

double plain(int pair) { return std::pow(10000.0, -2.0 * pair / 64); }

}  // namespace

TEST_CASE("frequencies fall from 1 by the base, and linear scaling divides all of them") {
  engine::ModelShape shape = shape_of_64();
  CHECK(rope_frequencies(shape, {}).size() == 32);
  CHECK(rope_frequencies(shape, {})[0] == 1);
  CHECK(rope_frequencies(shape, {})[31] == Approx(plain(31)));
  shape.rope_scale = 0.125F;
  CHECK(rope_frequencies(shape, {})[31] == Approx(plain(31) / 8));
}

TEST_CASE("factors divide the frequency of their pair") {
  std::vector<float> factors(32, 1);
  factors[30] = 8;
  const std::vector<double> frequencies = rope_frequencies(shape_of_64(), factors);
  CHECK(frequencies[29] == Approx(plain(29)));
  CHECK(frequencies[30] == Approx(plain(30) / 8));
}

TEST_CASE("YaRN keeps fast pairs, scales slow ones whole and ramps between") {
  engine::ModelShape shape = shape_of_64();
  shape.rope_scale = 0.25F;
  shape.yarn = {.extrapolation = 1, .original_context_tokens = 4096};
  // A pair turns 4096 * frequency / (2 pi) times: 32 times at pair 10.5, once at pair 22.5.
  const std::vector<double> frequencies = rope_frequencies(shape, {});
  CHECK(frequencies[0] == 1);
  CHECK(frequencies[10] == Approx(plain(10)));
  CHECK(frequencies[23] == Approx(plain(23) / 4));
  CHECK(frequencies[31] == Approx(plain(31) / 4));
  // The ramp runs from pair 10 to pair 23.
  const double kept = 1 - (15.0 - 10) / (23 - 10);
  CHECK(frequencies[15] == Approx(plain(15) * (0.25 * (1 - kept) + kept)));
}

TEST_CASE("a ramp beyond the head is cut to it") {
  engine::ModelShape shape = shape_of_64();
  shape.rope_scale = 0.5F;
  shape.yarn = {.extrapolation = 1, .original_context_tokens = 1};  // no pair turns once
  for (const double frequency : rope_frequencies(shape, {})) CHECK(frequency <= 1);
  CHECK(rope_frequencies(shape, {})[31] == Approx(plain(31) / 2));
}

}  // namespace efimd::test
