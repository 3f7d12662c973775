#include "tests/engine/backend/gpu/operations.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "engine/backend/cpu/half.h"
#include "engine/backend/cpu/kernels.h"
#include "engine/backend/gpu/packed_weights.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/gpu/buffers.h"
#include "tests/engine/backend/weight_values.h"

namespace efimd::test {
namespace {

using namespace engine::gpu;
using engine::TensorType;
using engine::TensorView;

Range packed(GpuDevice& device, const TensorView& tensor) {
  const kernels::RowLayout layout = row_layout(tensor.type, tensor.cols);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(tensor.rows) * layout.row_words);
  for (std::int64_t row = 0; row < tensor.rows; ++row)
    pack_row(tensor, row, layout,
             std::span(words).subspan(static_cast<std::size_t>(row) * layout.row_words,
                                      layout.row_words));
  return put(device, words);
}

struct Quantized {
  Range quants, scales;
};

Quantized quantize(GpuDevice& device, const Range& x, std::size_t count) {
  const Quantized result{put(device, std::vector<std::uint32_t>(count / 4)),
                         put(device, std::vector<float>(count / 16))};
  Operation operation;
  operation.kernel = Kernel::kQuantizeRows;
  operation.groups = {static_cast<std::uint32_t>(count / 32 + 63) / 64, 1, 1};
  operation.operands = {x, result.quants, result.scales};
  operation.set_sizes(kernels::QuantizeSizes{static_cast<std::uint32_t>(count / 32)});
  REQUIRE(device.run({&operation, 1}));
  return result;
}

struct Case {
  TensorType type;
  int rows, cols, tokens;
};

void check_product(GpuDevice& device, const Case& of) {
  std::deque<std::vector<std::byte>> storage;
  std::mt19937 random(7);
  const TensorView tensor = random_tensor(storage, of.type, of.rows, of.cols, 1, random);
  const auto inputs =
      random_values(static_cast<std::size_t>(of.tokens) * static_cast<std::size_t>(of.cols), 5);
  const auto bias = random_values(static_cast<std::size_t>(of.rows), 6);
  const Range x = put(device, inputs);
  const bool quantized = is_quantized(of.type);
  const Quantized in_8_bits = quantized ? quantize(device, x, inputs.size()) : Quantized{x, x};
  const std::size_t outputs =
      static_cast<std::size_t>(of.tokens) * static_cast<std::size_t>(of.rows);
  const Range out = put(device, std::vector<float>(outputs, 0.5F));
  const kernels::RowLayout layout = row_layout(of.type, of.cols);
  const bool many = of.tokens > 1;
  const std::uint32_t tokens = static_cast<std::uint32_t>(of.tokens);
  Operation operation;
  operation.kernel = Kernel::kMatmul;
  operation.type = static_cast<std::uint32_t>(packed_type(of.type));
  operation.many = many;
  operation.groups = {static_cast<std::uint32_t>(of.rows),
                      many ? (tokens + kernels::kTokensOfTile - 1) / kernels::kTokensOfTile : 1, 1};
  const Range weights = packed(device, tensor);
  operation.operands = {
      weights, quantized ? in_8_bits.quants : x, in_8_bits.scales, put(device, bias), x, out};
  operation.set_sizes(kernels::MatmulSizes{
      layout, static_cast<std::uint32_t>(of.cols), static_cast<std::uint32_t>(of.rows), 0,
      static_cast<std::uint32_t>(of.rows), tokens, 1, 1, 0, 1});
  REQUIRE(device.run({&operation, 1}));

  std::vector<Expected> expected;
  const auto scales = get<float>(device, in_8_bits.scales, quantized ? inputs.size() / 16 : 0);
  const auto quants = get<std::int8_t>(device, in_8_bits.quants, quantized ? inputs.size() : 0);
  for (int t = 0; t < of.tokens; ++t)
    for (int n = 0; n < of.rows; ++n) {
      double sum = 0.5 + static_cast<double>(bias[static_cast<std::size_t>(n)]);
      double size = std::fabs(sum);
      for (int k = 0; k < of.cols; ++k) {
        const std::size_t i = static_cast<std::size_t>(t) * static_cast<std::size_t>(of.cols) +
                              static_cast<std::size_t>(k);
        const double value = quantized ? quants[i] * static_cast<double>(scales[i / 32 * 2])
                                       : static_cast<double>(inputs[i]);
        const double product = element(tensor, n, k) * value;
        sum += product;
        size += std::fabs(product);
      }
      expected.push_back({sum, 2e-6 * size});
    }
  INFO(tensor_type_name(of.type) << ", " << of.rows << " x " << of.cols << ", " << of.tokens
                                 << " tokens");
  check_close(get<float>(device, out, outputs), expected);
}

}  // namespace

void check_products(GpuDevice& device) {
  for (const TensorType type : kWeightTypes)
    for (const Case& of : {Case{type, 5, 256, 1}, {type, 3, 512, 9}, {type, 17, 1280, 8}})
      check_product(device, of);
  for (const int cols : {32, 64, 96, 896}) {
    check_product(device, {TensorType::kQ8_0, 4, cols, 3});
    check_product(device, {TensorType::kQ5_0, 4, cols, 1});
    check_product(device, {TensorType::kF16, 4, cols, 17});
  }
}

void check_quantize(GpuDevice& device) {
  std::vector<float> values = random_values(32 * 8, 3);
  std::fill_n(values.begin(), 32, 0.0F);  // nothing
  values[40] = 1e30F;                     // one that leaves the others nothing
  for (std::size_t i = 0; i < 32; ++i) values[64 + i] = static_cast<float>(i) + 0.5F;
  values[64] = 127;                              // scale 1: all are ties
  std::fill_n(values.begin() + 96, 32, 1e-31F);  // under the floor
  std::fill_n(values.begin() + 128, 32, -3.0F);  // all at the lower end
  const Range x = put(device, values);
  const Quantized result = quantize(device, x, values.size());
  const auto quants = get<std::int8_t>(device, result.quants, values.size());
  const auto scales = get<float>(device, result.scales, values.size() / 16);

  std::vector<std::int8_t> wanted(values.size());
  std::vector<float> wanted_scales(values.size() / 32), totals(values.size() / 32);
  std::vector<std::int32_t> offsets(values.size() / 32), half_offsets(values.size() / 16);
  engine::cpu::scalar_kernels().quantize(
      values.data(), static_cast<int>(values.size()),
      {wanted.data(), wanted_scales.data(), offsets.data(), half_offsets.data(), totals.data()});
  for (std::size_t group = 0; group < wanted_scales.size(); ++group) {
    INFO("group " << group);
    CHECK(scales[2 * group] == Approx(wanted_scales[group]).epsilon(1e-6));
    int sum = 0;
    for (std::size_t i = 32 * group; i < 32 * group + 32; ++i) {
      INFO("value " << values[i] << ": got " << int{quants[i]} << ", expected " << int{wanted[i]});
      // A division that is off by a bit moves a tie.
      CHECK(std::abs(quants[i] - wanted[i]) <= (group == 2 ? 0 : 1));
      sum += quants[i];
    }
    CHECK(scales[2 * group + 1] ==
          Approx(static_cast<float>(sum) * scales[2 * group]).margin(1e-30));
  }
}

void check_halves(GpuDevice& device) {
  std::vector<float> values;
  for (int exponent = -30; exponent <= 18; ++exponent)
    for (const float mantissa :
         {1.0F, 1.00048828125F, 1.000732421875F, 1.00146484375F, 1.4F, 1.9999999F})
      for (const float sign : {1.0F, -1.0F})
        values.push_back(sign * std::ldexp(mantissa, exponent));
  values.push_back(INFINITY);
  values.resize((values.size() + 255) / 256 * 256);
  const std::size_t tokens = values.size() / 256;
  const auto count = static_cast<std::uint32_t>(tokens);
  const Range v = put(device, values);
  const Range rest = put(device, std::vector<float>(values.size()));
  std::vector<std::uint32_t> places(tokens);
  for (std::size_t t = 0; t < tokens; ++t) places[t] = static_cast<std::uint32_t>(t);
  const Range kv = put(device, std::vector<std::uint32_t>(2 * 32 * 128));
  Operation operation;
  operation.kernel = Kernel::kStoreRows;
  operation.groups = {count, 3, 1};
  operation.operands = {rest, rest, v, rest, rest, rest, kv, put(device, places)};
  operation.set_sizes(kernels::StoreSizes{1, 1, 256, 0, 0, 0, 0, 0, 1});
  REQUIRE(tokens <= 32);
  REQUIRE(device.run({&operation, 1}));
  const auto halves = get<std::uint16_t>(device, kv, 2 * 32 * 256);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float limited = std::clamp(values[i], -engine::cpu::kHalfMax, engine::cpu::kHalfMax);
    INFO(values[i]);
    CHECK(halves[32 * 256 + i] == engine::cpu::float_to_half(limited));
  }
}

}  // namespace efimd::test
