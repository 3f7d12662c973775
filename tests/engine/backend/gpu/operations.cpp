#include "tests/engine/backend/gpu/operations.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <string>
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

/// Rows [first, first + rows) of a tensor.
Range packed(GpuDevice& device, const TensorView& tensor, int first, int rows) {
  const kernels::RowLayout layout = row_layout(tensor.type, tensor.cols);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(rows) * layout.row_words);
  for (int row = 0; row < rows; ++row)
    pack_row(tensor, first + row, layout,
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
  int second_part = 0;  ///< rows of a second part
  bool add = true, biased = true;
};

/// A matrix and inputs on the device, and what tells of them. Outputs begin as 0.5.
struct Product {
  Product(GpuDevice& of_device, const Case& of)
      : device(of_device), what(of), stride(of.rows), random(7) {
    tensor = random_tensor(storage, of.type, of.rows, of.cols, 1, random);
    inputs =
        random_values(static_cast<std::size_t>(of.tokens) * static_cast<std::size_t>(of.cols), 5);
    bias = random_values(static_cast<std::size_t>(of.rows), 6);
    x = put(device, inputs);
    bias_range = put(device, bias);
    quantized = is_quantized(of.type);
    in_8_bits = quantized ? quantize(device, x, inputs.size()) : Quantized{x, x};
    out = put(device, std::vector<float>(outputs(), 0.5F));
  }
  std::size_t outputs() const {
    return static_cast<std::size_t>(what.tokens) * static_cast<std::size_t>(stride);
  }
  std::vector<float> result() const { return get<float>(device, out, outputs()); }

  /// Multiplies rows [first, first + rows) with tokens [token, token + tokens).
  void multiply(int first, int rows, int token, int tokens) {
    const bool many = tokens > 1;
    const auto from = static_cast<std::size_t>(token);
    const auto behind = [&](Range range, std::size_t bytes) {
      return Range{range.buffer, range.offset + bytes, range.bytes - bytes};
    };
    const auto cols = static_cast<std::size_t>(what.cols);
    const Range rows_of_x =
        quantized ? behind(in_8_bits.quants, from * cols) : behind(x, from * cols * sizeof(float));
    Operation operation;
    operation.kernel = Kernel::kMatmul;
    operation.type = static_cast<std::uint32_t>(packed_type(what.type));
    operation.many = many;
    const auto count = static_cast<std::uint32_t>(tokens);
    operation.groups = {static_cast<std::uint32_t>(rows),
                        many ? (count + kernels::kTokensOfTile - 1) / kernels::kTokensOfTile : 1,
                        1};
    operation.operands = {packed(device, tensor, first, rows),
                          rows_of_x,
                          quantized ? behind(in_8_bits.scales, from * cols / 4) : x,
                          bias_range,
                          x,
                          behind(out, from * static_cast<std::size_t>(stride) * sizeof(float))};
    operation.set_sizes(kernels::MatmulSizes{
        row_layout(what.type, what.cols), static_cast<std::uint32_t>(what.cols),
        static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(first),
        static_cast<std::uint32_t>(stride), count, what.add ? 1U : 0U, what.biased ? 1U : 0U, 0,
        1});
    REQUIRE(device.run({&operation, 1}));
  }

  GpuDevice& device;
  Case what;
  int stride;
  std::deque<std::vector<std::byte>> storage;
  std::mt19937 random;
  TensorView tensor;
  std::vector<float> inputs, bias;
  bool quantized = false;
  Range x, bias_range, out;
  Quantized in_8_bits;
};

/// What the specification says of a product, in f64.
std::vector<Expected> expected_of(const Product& product) {
  const Case& of = product.what;
  const std::size_t inputs = product.inputs.size();
  const auto scales =
      get<float>(product.device, product.in_8_bits.scales, product.quantized ? inputs / 16 : 0);
  const auto quants =
      get<std::int8_t>(product.device, product.in_8_bits.quants, product.quantized ? inputs : 0);
  const auto cols = static_cast<std::size_t>(of.cols);
  std::vector<double> values(inputs), weights;
  for (std::size_t i = 0; i < inputs; ++i)
    values[i] = product.quantized ? quants[i] * static_cast<double>(scales[i / 32 * 2])
                                  : static_cast<double>(product.inputs[i]);
  for (int n = 0; n < of.rows; ++n)
    for (int k = 0; k < of.cols; ++k) weights.push_back(element(product.tensor, n, k));
  std::vector<Expected> expected;
  for (std::size_t t = 0; t < static_cast<std::size_t>(of.tokens); ++t)
    for (std::size_t n = 0; n < static_cast<std::size_t>(of.rows); ++n) {
      double sum = (of.add ? 0.5 : 0.0) + (of.biased ? static_cast<double>(product.bias[n]) : 0.0);
      double size = std::fabs(sum);
      for (std::size_t k = 0; k < cols; ++k) {
        const double each = weights[n * cols + k] * values[t * cols + k];
        sum += each;
        size += std::fabs(each);
      }
      expected.push_back({sum, 2e-6 * size});
    }
  return expected;
}

std::string told(const Case& of) {
  return std::string(tensor_type_name(of.type)) + ", " + std::to_string(of.rows) + " x " +
         std::to_string(of.cols) + ", " + std::to_string(of.tokens) + " tokens";
}

void check_product(GpuDevice& device, const Case& of) {
  INFO(told(of));
  Product product(device, of);
  product.multiply(0, of.rows - of.second_part, 0, of.tokens);
  if (of.second_part > 0) product.multiply(of.rows - of.second_part, of.second_part, 0, of.tokens);
  check_close(product.result(), expected_of(product));
}

/// The bits of a product of all tokens are those of steps of `step` tokens, for the last `rows` rows.
void check_steps(GpuDevice& device, const Case& of, int step, int rows) {
  INFO(told(of) << ", in steps of " << step);
  Product whole(device, of), cut(device, of);
  whole.multiply(0, of.rows, 0, of.tokens);
  for (int token = 0; token < of.tokens; token += step)
    cut.multiply(of.rows - rows, rows, token, std::min(step, of.tokens - token));
  const auto all = whole.result(), some = cut.result();
  const auto last_rows = [&](const std::vector<float>& outputs) {
    std::vector<float> kept;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (static_cast<int>(i % static_cast<std::size_t>(of.rows)) >= of.rows - rows)
        kept.push_back(outputs[i]);
    return kept;
  };
  check_same_bits(last_rows(all), last_rows(some));
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

void check_prompt_products(GpuDevice& device) {
  for (const TensorType type : kWeightTypes) {
    check_product(device, {type, 37, 256, 17, 0, false, true});
    check_product(device, {type, 70, 1280, 33, 33, true, false});
    check_product(device, {type, 65, 512, 65, 1, false, false});
    if (engine::tensor_block(type).elements > 32) continue;
    for (const int cols : {32, 96, 896}) check_product(device, {type, 33, cols, 18});
  }
}

void check_batch_invariance(GpuDevice& device, LargeTiles large) {
  // One with whole bytes, one with a minimum, one with halves, one with a plane of high bits.
  constexpr std::array kFew = {TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ6_K,
                               TensorType::kQ5_0};
  for (const TensorType type : kWeightTypes) {
    // 40 groups: the first classes have two, the last one. 65 tokens: a second or third tile of one.
    const Case some{type, 35, 1280, 65};
    check_steps(device, some, 1, 3);
    check_steps(device, some, 8, 35);
    check_steps(device, some, 17, 35);
    // So many rows that blocks are large.
    const bool few = std::ranges::find(kFew, type) != kFew.end();
    if (large == LargeTiles::kAll ? is_quantized(type) : large == LargeTiles::kFewTypes && few)
      check_steps(device, {type, 8129, 256, 17}, 8, 9);
  }
  for (const int cols : {32, 96, 1152}) check_steps(device, {TensorType::kQ5_0, 5, cols, 25}, 8, 5);
  if (large == LargeTiles::kAll) check_steps(device, {TensorType::kQ5_0, 8129, 1152, 17}, 1, 9);
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
