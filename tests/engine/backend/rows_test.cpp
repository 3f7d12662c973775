#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/rope.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd::test {
namespace {

using namespace engine::cpu;
using engine::Isa;

std::vector<float> normal_values(std::size_t count, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

TEST_CASE("RMS norm agrees with f64 at every width") {
  for (const int width : {1, 7, 8, 15, 16, 17, 64, 896}) {
    const auto size = static_cast<std::size_t>(width);
    const std::vector<float> x = normal_values(size, 3, 1);
    const std::vector<float> weight = normal_values(size, 1, 2);
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    std::vector<Expected> expected;
    for (std::size_t i = 0; i < size; ++i) {
      const double value = x[i] / std::sqrt(squares / width + 1e-6) * weight[i];
      expected.push_back({value, 2e-6 * std::fabs(value) + 1e-12});
    }
    for (const Isa isa : isas_here()) {
      INFO(isa_name(isa) << ", width " << width);
      std::vector<float> out(size, NAN);
      kernels_of(isa).rms_norm(x.data(), weight.data(), width, 1e-6F, out.data());
      check_close(out, expected);
    }
  }
}

TEST_CASE("layer norm agrees with f64 at every width, also far from zero") {
  for (const int width : {1, 7, 8, 15, 16, 17, 64, 896}) {
    const auto size = static_cast<std::size_t>(width);
    std::vector<float> x = normal_values(size, 3, 1);
    for (float& value : x) value += 40;
    const std::vector<float> weight = normal_values(size, 1, 2);
    const std::vector<float> bias = normal_values(size, 1, 3);
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / width;
    double squares = 0;
    for (const float value : x) squares += (value - mean) * (value - mean);
    std::vector<Expected> expected;
    for (std::size_t i = 0; i < size; ++i) {
      const double value = (x[i] - mean) / std::sqrt(squares / width + 1e-5) * weight[i] + bias[i];
      expected.push_back({value, 2e-5 * (1 + std::fabs(weight[i]))});
    }
    for (const Isa isa : isas_here()) {
      INFO(isa_name(isa) << ", width " << width);
      std::vector<float> out(size, NAN);
      kernels_of(isa).layer_norm(x.data(), weight.data(), bias.data(), width, 1e-5F, out.data());
      check_close(out, expected);
    }
  }
}

TEST_CASE("GELU, alone and times up, agrees with f64 from -300 to 300") {
  std::vector<float> gate;
  for (int i = -3000; i <= 3000; ++i) gate.push_back(static_cast<float>(i) * 0.1F);
  const std::vector<float> up = normal_values(gate.size(), 2, 3);
  for (const bool gated : {false, true}) {
    std::vector<Expected> expected;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      const double u = std::sqrt(2 / 3.14159265358979) * (g + 0.044715 * g * g * g);
      const double value = g / (1 + std::exp(-2 * u)) * (gated ? up[i] : 1);
      // The exponent 2u is rounded to f32, and that many times e^-2u.
      expected.push_back(
          {value, (1e-6 + 4e-7 * std::min(90.0, std::fabs(u))) * std::fabs(value) + 1e-30});
    }
    for (const Isa isa : isas_here()) {
      INFO(isa_name(isa) << (gated ? ", gated" : ""));
      std::vector<float> out(gate.size(), NAN);
      kernels_of(isa).gelu_mul(gate.data(), gated ? up.data() : nullptr,
                               static_cast<int>(gate.size()), out.data());
      check_close(out, expected);
    }
  }
}

TEST_CASE("SiLU times up agrees with f64 from -300 to 300") {
  std::vector<float> gate;
  for (int i = -3000; i <= 3000; ++i) gate.push_back(static_cast<float>(i) * 0.1F);
  const std::vector<float> up = normal_values(gate.size(), 2, 3);
  std::vector<Expected> expected;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    const double value = g / (1 + std::exp(-g)) * up[i];
    expected.push_back({value, 1e-6 * std::fabs(value) + 1e-30});
  }
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa));
    std::vector<float> out(gate.size(), NAN);
    kernels_of(isa).silu_mul(gate.data(), up.data(), static_cast<int>(gate.size()), out.data());
    check_close(out, expected);
  }
}

TEST_CASE("a NaN in a row comes out as NaN where it went in") {
  for (const Isa isa : isas_here()) {
    std::vector<float> gate(20, 1.0F);
    gate[5] = gate[18] = NAN;
    const std::vector<float> up(20, 1.0F);
    std::vector<float> out(20, 0.0F);
    kernels_of(isa).silu_mul(gate.data(), up.data(), 20, out.data());
    for (std::size_t i = 0; i < 20; ++i) CHECK(std::isnan(out[i]) == (i == 5 || i == 18));
  }
}

TEST_CASE("every instruction set quantizes alike: scale, sums, and the nearest level") {
  std::vector<float> x = normal_values(32 * 8, 1, 4);
  std::fill(x.begin() + 32, x.begin() + 64, 0.0F);    // 0 / 0
  std::fill(x.begin() + 64, x.begin() + 96, 1e-35F);  // 127 / max is infinite
  x[100] = 1e30F;                                     // an outlier
  for (int i = 0; i < 32; ++i) x[static_cast<std::size_t>(128 + i)] = static_cast<float>(i) - 15.5F;
  x[128] = -127.0F;  // ties: scale 1 and halves
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa));
    std::vector<std::int8_t> quants(x.size(), 99);
    std::vector<float> scales(8, NAN);
    std::vector<std::int32_t> offsets(8, 7);
    std::vector<std::int32_t> half_offsets(16, 7);
    std::vector<float> totals(8, NAN);
    kernels_of(isa).quantize(
        x.data(), 256,
        {quants.data(), scales.data(), offsets.data(), half_offsets.data(), totals.data()});
    for (std::size_t group = 0; group < 8; ++group) {
      float largest = 0;
      int sum = 0;
      int half_sum = 0;
      for (std::size_t i = group * 32; i < group * 32 + 32; ++i) {
        largest = std::max(largest, std::fabs(x[i]));
        sum += quants[i];
        if (i % 32 < 16) half_sum += quants[i];
        CHECK(quants[i] >= -127);
      }
      const bool zero = largest < 1e-30F;
      INFO("group " << group);
      CHECK(offsets[group] == -128 * sum);
      CHECK(half_offsets[2 * group] == -128 * half_sum);
      CHECK(half_offsets[2 * group + 1] == -128 * (sum - half_sum));
      CHECK(scales[group] == (zero ? 0.0F : largest / 127));
      CHECK(totals[group] == static_cast<float>(sum) * scales[group]);
      for (std::size_t i = group * 32; i < group * 32 + 32; ++i) {
        const double back = static_cast<double>(quants[i]) * scales[group];
        CHECK(std::fabs(back - x[i]) <= (zero ? 1e-30 : 0.5001 * scales[group]));
      }
    }
    CHECK(quants[129] == -14);  // -14.5 to even
    CHECK(quants[130] == -14);  // -13.5 to even
  }
}

TEST_CASE("the f16 conversions are exact for all 65536 values, and nearest even between them") {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) continue;
    if (float_to_half(value) != half)
      FAIL("f16 " << bits << " came back as " << float_to_half(value));
    const double exponent = bits >> 10U & 31U;
    const double fraction = bits & 1023U;
    const double size = exponent == 0 ? std::ldexp(fraction, -24)
                        : exponent == 31
                            ? INFINITY
                            : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
    if (std::fabs(value) != size) FAIL("f16 " << bits << " is " << value);
  }
  CHECK(float_to_half(1.0F + 1.0F / 2048) == 0x3C00);  // a tie, down to even
  CHECK(float_to_half(1.0F + 3.0F / 2048) == 0x3C02);  // a tie, up to even
  CHECK(float_to_half(65519.0F) == 0x7BFF);
  CHECK(float_to_half(65520.0F) == 0x7C00);
}

TEST_CASE(
    "values past f16 saturate on their way to KV, the others round as the specification does") {
  std::vector<float> x = normal_values(37, 100, 5);
  x[0] = 1e9F;
  x[17] = -1e9F;
  x[36] = 1e-7F;
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa));
    std::vector<std::uint16_t> out(37, 0x7E00);
    kernels_of(isa).to_half(x.data(), 37, out.data());
    CHECK(out[0] == 0x7BFF);
    CHECK(out[17] == 0xFBFF);
    for (std::size_t i = 0; i < 37; ++i)
      CHECK(out[i] == float_to_half(std::clamp(x[i], -65504.0F, 65504.0F)));
  }
}

TEST_CASE("RoPE turns the pairs of its order by the angle of the position") {
  for (const engine::RopePairs pairs : {engine::RopePairs::kAdjacent, engine::RopePairs::kHalves}) {
    engine::ModelShape shape = tiny_shape();
    shape.rope_pairs = pairs;
    shape.head_width = 64;
    shape.rope_width = 48;  // the last 16 elements stay
    shape.rope_base = 1e6F;
    shape.rope_scale = 0.25F;
    shape.rope_magnitude = 1.5F;
    Rope rope(shape, {});
    const std::vector<int> positions = {0, 1, 7, 4095, 70000};
    rope.prepare(positions);
    for (std::size_t row = 0; row < positions.size(); ++row) {
      const std::vector<float> before = normal_values(64, 1, 6);
      std::vector<float> after = before;
      rope.rotate(static_cast<int>(row), after.data());
      std::vector<Expected> expected(64);
      for (std::size_t e = 48; e < 64; ++e) expected[e] = {before[e], 0};
      for (std::size_t i = 0; i < 24; ++i) {
        const bool halves = pairs == engine::RopePairs::kHalves;
        const std::size_t first = halves ? i : 2 * i;
        const std::size_t second = halves ? i + 24 : 2 * i + 1;
        const double angle =
            positions[row] * 0.25 * std::pow(1e6, -2.0 * static_cast<double>(i) / 48.0);
        const double a = 1.5 * before[first];
        const double b = 1.5 * before[second];
        expected[first] = {a * std::cos(angle) - b * std::sin(angle), 2e-6};
        expected[second] = {a * std::sin(angle) + b * std::cos(angle), 2e-6};
      }
      INFO("position " << positions[row]);
      check_close(after, expected);
    }
  }
}

}  // namespace efimd::test
