#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/model/gguf.h"
#include "tests/engine/backend/weight_values.h"

namespace efimd::test {

/// T rows of inputs, quantized by the scalar kernel so that every instruction set multiplies the
/// same numbers.
struct InputRows {
  InputRows(int tokens_in, int cols_in, std::vector<float> values_in)
      : tokens(tokens_in), cols(cols_in), values(std::move(values_in)) {
    quants.resize(values.size());
    scales.resize(values.size() / 32 + 1);
    offsets.resize(values.size() / 32 + 1);
    half_offsets.resize(values.size() / 16 + 1);
    totals.resize(values.size() / 32 + 1);
    if (cols % 32 != 0) return;
    engine::cpu::scalar_kernels().quantize(
        values.data(), tokens * cols,
        {quants.data(), scales.data(), offsets.data(), half_offsets.data(), totals.data()});
    lay_out_tiles(0);
  }
  InputRows(int tokens_in, int cols_in, std::mt19937& random)
      : InputRows(tokens_in, cols_in,
                  random_values(static_cast<std::size_t>(tokens_in * cols_in), random)) {}

  static std::vector<float> random_values(std::size_t count, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  }
  /// The rows as tiles, the first of them at row `first` of its block. What no row has is 99.
  void lay_out_tiles(int first) {
    const auto groups = static_cast<std::size_t>(cols / 32);
    const auto rows = static_cast<std::size_t>((first + tokens + 15) / 16 * 16);
    tiled_quants.assign(rows * groups * 32, 99);
    tiled_scales.assign(rows * groups, 99);
    tiled_totals = tiled_scales;
    first_tiled = first;
    for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
      const std::size_t row = static_cast<std::size_t>(first) + t;
      for (std::size_t group = 0; group < groups; ++group) {
        const std::size_t at = (row / 16 * groups + group) * 16 + row % 16;
        const std::size_t from = t * groups + group;
        std::copy_n(&quants[from * 32], 32, &tiled_quants[at * 32]);
        tiled_scales[at] = scales[from];
        tiled_totals[at] = totals[from];
      }
    }
  }
  engine::cpu::Inputs inputs() const {
    return {tokens,         values.data(),
            quants.data(),  scales.data(),
            offsets.data(), half_offsets.data(),
            totals.data(),  {tiled_quants.data(), tiled_scales.data(), tiled_totals.data()},
            first_tiled};
  }
  /// What weights of `type` are multiplied with.
  double at(engine::TensorType type, int t, int k) const {
    const auto i = static_cast<std::size_t>(t * cols + k);
    return is_quantized(type) ? static_cast<double>(quants[i]) * scales[i / 32] : values[i];
  }

  int tokens;
  int cols;
  std::vector<float> values;
  std::vector<std::int8_t> quants;
  std::vector<float> scales;
  std::vector<std::int32_t> offsets, half_offsets;
  std::vector<float> totals;
  std::vector<std::int8_t> tiled_quants;
  std::vector<float> tiled_scales, tiled_totals;
  int first_tiled = 0;
};

/// A number of columns that `type` can have: `wanted`, or the next multiple of its block.
inline int cols_of(engine::TensorType type, int wanted) {
  const int block = engine::tensor_block(type).elements;
  return (wanted + block - 1) / block * block;
}

}  // namespace efimd::test
