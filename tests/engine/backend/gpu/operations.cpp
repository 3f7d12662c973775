#include "tests/engine/backend/gpu/operations.h"

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/kernels.h"
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

/// Values in the forms that products read.
struct Inputs {
  Range quants, scales, halves;
};

/// Values as the partials of attention over one token, whose merge is the values themselves: heads of 32.
Inputs in_forms(GpuDevice& device, const std::vector<float>& values,
                TensorType halves = TensorType::kF16) {
  const std::size_t count = values.size();
  std::vector<float> partials;
  for (std::size_t i = 0; i < count; i += 32) {
    partials.insert(partials.end(), {0.0F, 1.0F});  // the maximum and the sum
    partials.insert(partials.end(), values.begin() + static_cast<std::ptrdiff_t>(i),
                    values.begin() + static_cast<std::ptrdiff_t>(i + 32));
  }
  const Inputs result{put(device, std::vector<std::uint32_t>(count / 4)),
                      put(device, std::vector<float>(count / 16)),
                      put(device, std::vector<std::uint16_t>(count))};
  const Range rows = put(device, std::vector<std::uint32_t>{0, 0});
  const Range floats = put(device, std::vector<float>(count));
  const auto heads = static_cast<std::uint32_t>(count / 32);
  Operation operation;
  operation.kernel = Kernel::kMerge;
  operation.groups = {1, (heads * 32 + kernels::kFormElements - 1) / kernels::kFormElements, 1};
  operation.operands = {put(device, partials), rows,          floats,
                        result.quants,         result.scales, result.halves};
  const bool can = device.limits().f16_products;
  const std::uint32_t kind = !can ? 0 : halves == TensorType::kBF16 ? 2 : 1;
  operation.set_sizes(kernels::MergeSizes{heads, 32, 1, 1, 1.0F, {1, 1, kind}});
  REQUIRE(device.run({&operation, 1}));
  const auto merged = get<float>(device, floats, count);
  for (std::size_t i = 0; i < count; ++i) REQUIRE(merged[i] == values[i]);
  return result;
}

struct Case {
  TensorType type;
  int rows, cols, tokens;
  int second_part = 0;  ///< rows of a second part
  bool add = true, biased = true;
  bool halves = false;  ///< inputs of the weights' type
};

bool multiplies_halves(const GpuDevice& device, TensorType type) {
  return (type == TensorType::kF16 && device.limits().f16_products) ||
         (type == TensorType::kBF16 && device.limits().bf16_products);
}

/// A matrix and inputs on the device, and what tells of them. Outputs begin as 0.5.
struct Product {
  Product(GpuDevice& of_device, const Case& of) : Product(of_device, of, of.rows) {}
  Product(GpuDevice& of_device, const Case& of, int outputs_of_token)
      : device(of_device), what(of), stride(outputs_of_token), random(7) {
    tensor = random_tensor(storage, of.type, of.rows, of.cols, 1, random);
    inputs =
        random_values(static_cast<std::size_t>(of.tokens) * static_cast<std::size_t>(of.cols), 5);
    bias = random_values(static_cast<std::size_t>(of.rows), 6);
    x = put(device, inputs);
    bias_range = put(device, bias);
    quantized = is_quantized(of.type);
    in = quantized || of.halves ? in_forms(device, inputs, of.type) : Inputs{x, x, x};
    out = put(device, std::vector<float>(outputs(), 0.5F));
  }
  std::size_t outputs() const {
    return static_cast<std::size_t>(what.tokens) * static_cast<std::size_t>(stride);
  }
  std::vector<float> result() const { return get<float>(device, out, outputs()); }

  /// Multiplies rows [first, first + rows) with tokens [token, token + tokens).
  void multiply(int first, int rows, int token, int tokens) {
    const int many_min = quantized ? device.limits().quantized_tile_min : 2;
    const bool many = many_min > 0 && tokens >= many_min;
    const auto from = static_cast<std::size_t>(token);
    const auto behind = [&](Range range, std::size_t bytes) {
      return Range{range.buffer, range.offset + bytes, range.bytes - bytes};
    };
    const auto cols = static_cast<std::size_t>(what.cols);
    const Range rows_of_x = quantized     ? behind(in.quants, from * cols)
                            : what.halves ? behind(in.halves, from * cols * 2)
                                          : behind(x, from * cols * sizeof(float));
    Operation operation;
    operation.kernel = what.halves ? Kernel::kMatmulHalves : Kernel::kMatmul;
    operation.type = static_cast<std::uint32_t>(packed_type(what.type));
    operation.many = many;
    const auto count = static_cast<std::uint32_t>(tokens);
    operation.groups = {
        static_cast<std::uint32_t>(rows),
        many ? (count + kernels::kTokensOfTile - 1) / kernels::kTokensOfTile : count, 1};
    const Range weights = packed(device, tensor, first, rows);
    const Range to = behind(out, from * static_cast<std::size_t>(stride) * sizeof(float));
    if (what.halves)
      operation.operands = {weights, rows_of_x, bias_range, x, to};
    else
      operation.operands = {
          weights,    rows_of_x, quantized ? behind(in.scales, from * cols / 4) : x,
          bias_range, x,         to};
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
  Inputs in;
};

/// What the specification says of a product, in f64.
std::vector<Expected> expected_of(const Product& product) {
  const Case& of = product.what;
  const std::size_t inputs = product.inputs.size();
  const bool quantized = product.quantized;
  const auto scales = get<float>(product.device, product.in.scales, quantized ? inputs / 16 : 0);
  const auto quants = get<std::int8_t>(product.device, product.in.quants, quantized ? inputs : 0);
  const auto halves = get<std::uint16_t>(product.device, product.in.halves, of.halves ? inputs : 0);
  const auto cols = static_cast<std::size_t>(of.cols);
  std::vector<double> values(inputs), weights;
  for (std::size_t i = 0; i < inputs; ++i)
    values[i] = quantized    ? quants[i] * static_cast<double>(scales[i / 32 * 2])
                : !of.halves ? static_cast<double>(product.inputs[i])
                : of.type == TensorType::kF16
                    ? static_cast<double>(engine::cpu::half_to_float(halves[i]))
                    : static_cast<double>(engine::cpu::bfloat_to_float(halves[i]));
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
      // Tensor cores may cut off what they add where others round it.
      expected.push_back({sum, (of.halves ? 1e-5 : 2e-6) * size});
    }
  return expected;
}

std::string told(const Case& of) {
  return std::string(tensor_type_name(of.type)) + (of.halves ? " on halves, " : ", ") +
         std::to_string(of.rows) + " x " + std::to_string(of.cols) + ", " +
         std::to_string(of.tokens) + " tokens";
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
  const int stride = (of.rows + 15) / 16 * 16;  // outputs of any token may begin an operand
  Product whole(device, of, stride), cut(device, of, stride);
  whole.multiply(0, of.rows, 0, of.tokens);
  for (int token = 0; token < of.tokens; token += step)
    cut.multiply(of.rows - rows, rows, token, std::min(step, of.tokens - token));
  const auto all = whole.result(), some = cut.result();
  const auto last_rows = [&](const std::vector<float>& outputs) {
    std::vector<float> kept;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const int row = static_cast<int>(i % static_cast<std::size_t>(stride));
      if (row >= of.rows - rows && row < of.rows) kept.push_back(outputs[i]);
    }
    return kept;
  };
  check_same_bits(last_rows(all), last_rows(some));
}

}  // namespace

void check_products(GpuDevice& device) {
  for (const TensorType type : kWeightTypes)
    for (Case of :
         {Case{type, 5, 256, 1}, {type, 3, 512, 9}, {type, 17, 1280, 8}, {type, 33, 96, 16}}) {
      if (of.cols == 96 && engine::tensor_block(type).elements > 32) continue;
      check_product(device, of);
      of.halves = true;
      if (multiplies_halves(device, type)) check_product(device, of);
    }
  for (const int cols : {32, 64, 96, 896}) {
    check_product(device, {TensorType::kQ8_0, 4, cols, 3});
    check_product(device, {TensorType::kQ5_0, 4, cols, 1});
    check_product(device, {TensorType::kF16, 4, cols, 17});
  }
}

void check_prompt_products(GpuDevice& device) {
  for (const TensorType type : kWeightTypes) {
    for (const bool halves : {false, true}) {
      if (halves && !multiplies_halves(device, type)) continue;
      check_product(device, {type, 37, 256, 17, 0, false, true, halves});
      check_product(device, {type, 70, 1280, 33, 33, true, false, halves});
      check_product(device, {type, 65, 512, 65, 1, false, false, halves});
      if (engine::tensor_block(type).elements > 32) continue;
      for (const int cols : {32, 96, 896})
        check_product(device, {type, 33, cols, 18, 0, true, true, halves});
    }
  }
}

void check_batch_invariance(GpuDevice& device, LargeTiles large) {
  for (const TensorType type : kWeightTypes) {
    // 40 groups: the first classes have two, the last one. 65 tokens: a second or third tile of one.
    for (const bool halves : {false, true}) {
      if (halves && !multiplies_halves(device, type)) continue;
      const Case some{type, 35, 1280, 65, 0, true, true, halves};
      check_steps(device, some, 1, 3);
      check_steps(device, some, 8, 35);
      check_steps(device, some, 17, 35);
      if (halves) check_steps(device, some, 16, 35);
      // So many rows that blocks are large: 128 of 128 rows.
      if (halves && large == LargeTiles::kYes)
        check_steps(device, {type, 16300, 96, 17, 0, true, true, true}, 8, 9);
    }
  }
  for (const int cols : {32, 96, 1152}) check_steps(device, {TensorType::kQ5_0, 5, cols, 25}, 8, 5);
}

void check_quantize(GpuDevice& device) {
  std::vector<float> values = random_values(32 * 8, 3);
  std::fill_n(values.begin(), 32, 0.0F);  // nothing
  values[40] = 1e30F;                     // one that leaves the others nothing
  for (std::size_t i = 0; i < 32; ++i) values[64 + i] = static_cast<float>(i) + 0.5F;
  values[64] = 127;                              // scale 1: all are ties
  std::fill_n(values.begin() + 96, 32, 1e-31F);  // under the floor
  std::fill_n(values.begin() + 128, 32, -3.0F);  // all at the lower end
  const Inputs result = in_forms(device, values);
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

namespace {

/// An operation whose result has forms, over `width` values of each of kFormRows rows.
struct FormCase {
  Kernel kernel;
  int width;
  bool gated, gelu;  ///< kActivate
  bool layer;        ///< kNormRows
};
constexpr int kFormRows = 3;

struct FormResult {
  std::vector<float> floats;
  std::vector<std::uint32_t> quants;
  std::vector<float> scales;
  std::vector<std::uint16_t> halves;
};
constexpr std::uint32_t kUnwritten = 0x7FC0AAAA;  // as a float, NaN

FormResult run_form(GpuDevice& device, const FormCase& of, const std::vector<float>& x,
                    kernels::Forms forms) {
  const auto width = static_cast<std::uint32_t>(of.width);
  const std::size_t count = kFormRows * std::size_t{width};
  const Range floats = put(device, std::vector<std::uint32_t>(count, kUnwritten));
  const Range quants = put(device, std::vector<std::uint32_t>(count / 4, kUnwritten));
  const Range scales = put(device, std::vector<std::uint32_t>(count / 16, kUnwritten));
  const Range halves = put(device, std::vector<std::uint16_t>(count));
  const Range in = put(device, x);
  Operation operation;
  operation.kernel = of.kernel;
  if (of.kernel == Kernel::kNormRows) {
    operation.groups = {kFormRows, 1, 1};
    operation.operands = {put(device, std::vector<std::uint32_t>{2, 0, 1}),
                          in,
                          put(device, random_values(width, 8)),
                          put(device, random_values(width, 9)),
                          floats,
                          quants,
                          scales,
                          halves};
    operation.set_sizes(kernels::NormSizes{width, of.layer ? 1U : 0U, 1e-5F, forms});
  } else {
    operation.groups = {(width + kernels::kFormElements - 1) / kernels::kFormElements, kFormRows,
                        1};
    operation.operands = {in, floats, quants, scales, halves};
    operation.set_sizes(
        kernels::ActivateSizes{width, of.gated ? 1U : 0U, of.gelu ? 1U : 0U, 1.5F, forms});
  }
  REQUIRE(device.run({&operation, 1}));
  return {get<float>(device, floats, count), get<std::uint32_t>(device, quants, count / 4),
          get<float>(device, scales, count / 16), get<std::uint16_t>(device, halves, count)};
}

std::vector<Expected> expected_norm(const FormCase& of, const std::vector<float>& x) {
  const std::size_t width = static_cast<std::size_t>(of.width);
  const auto weight = random_values(width, 8), bias = random_values(width, 9);
  std::vector<Expected> expected;
  for (const std::size_t row : {2, 0, 1}) {
    double mean = 0, squares = 0;
    for (std::size_t k = 0; of.layer && k < width; ++k)
      mean += static_cast<double>(x[row * width + k]) / of.width;
    for (std::size_t k = 0; k < width; ++k)
      squares += std::pow(static_cast<double>(x[row * width + k]) - mean, 2) / of.width;
    for (std::size_t k = 0; k < width; ++k) {
      const double value = (static_cast<double>(x[row * width + k]) - mean) /
                               std::sqrt(squares + 1e-5) * static_cast<double>(weight[k]) +
                           (of.layer ? static_cast<double>(bias[k]) : 0.0);
      expected.push_back({value, 1e-5 * (std::fabs(value) + 1)});
    }
  }
  return expected;
}

std::vector<Expected> expected_activation(const FormCase& of, const std::vector<float>& x) {
  const std::size_t width = static_cast<std::size_t>(of.width);
  std::vector<Expected> expected;
  for (std::size_t row = 0; row < kFormRows; ++row)
    for (std::size_t k = 0; k < width; ++k) {
      const std::size_t at = row * width * (of.gated ? 2 : 1) + k;
      const auto gate = static_cast<double>(x[at]);
      const double tanh = std::tanh(0.7978845608028654 * (gate + 0.044715 * gate * gate * gate));
      const double active = of.gelu ? 0.5 * gate * (1 + tanh) : gate / (1 + std::exp(-gate));
      const double value = 1.5 * active * (of.gated ? static_cast<double>(x[at + width]) : 1.0);
      expected.push_back({value, 1e-5 * (std::fabs(value) + 1)});
    }
  return expected;
}

std::uint16_t nearest_bfloat(float value) {
  const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
  const auto above = static_cast<std::uint16_t>(below + 1);
  const double to_below =
      std::fabs(static_cast<double>(value) - engine::cpu::bfloat_to_float(below));
  const double to_above =
      std::fabs(static_cast<double>(value) - engine::cpu::bfloat_to_float(above));
  if (to_below == to_above) return below % 2 == 0 ? below : above;
  return to_below < to_above ? below : above;
}

void check_form(GpuDevice& device, const FormCase& of) {
  INFO("width " << of.width << ", " << (of.kernel == Kernel::kNormRows ? "norm" : "activation"));
  const auto x = random_values(kFormRows * static_cast<std::size_t>(of.width) * 2, 3);
  const FormResult floats = run_form(device, of, x, {1, 0, 0});
  check_close(floats.floats,
              of.kernel == Kernel::kNormRows ? expected_norm(of, x) : expected_activation(of, x));
  CHECK(std::ranges::all_of(floats.quants, [](auto word) { return word == kUnwritten; }));
  for (const std::uint32_t kind : {1U, 2U}) {
    if (!device.limits().f16_products) break;
    const FormResult halves = run_form(device, of, x, {0, 0, kind});
    for (std::size_t i = 0; i < halves.halves.size(); ++i)
      REQUIRE(halves.halves[i] == (kind == 1 ? engine::cpu::float_to_half(floats.floats[i])
                                             : nearest_bfloat(floats.floats[i])));
  }
  if (of.width % 32 != 0) return;
  const FormResult quants = run_form(device, of, x, {0, 1, 0}),
                   both = run_form(device, of, x, {1, 1, 0});
  CHECK(std::ranges::all_of(quants.floats, [](float value) { return std::isnan(value); }));
  check_same_bits(both.floats, floats.floats);
  const Inputs wanted = in_forms(device, floats.floats);
  for (const FormResult* result : {&quants, &both}) {
    CHECK(result->quants == get<std::uint32_t>(device, wanted.quants, floats.floats.size() / 4));
    check_same_bits(result->scales, get<float>(device, wanted.scales, floats.floats.size() / 16));
  }
}

}  // namespace

void check_forms(GpuDevice& device) {
  for (const int width : {6, 32, 96, 250, 256, 288, 896}) {
    for (const bool layer : {false, true})
      check_form(device, {Kernel::kNormRows, width, false, false, layer});
    for (const bool gated : {false, true})
      for (const bool gelu : {false, true})
        check_form(device, {Kernel::kActivate, width, gated, gelu, false});
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
  std::vector<float> qkv;  // a row's query and key do not matter
  for (std::size_t t = 0; t < tokens; ++t) {
    qkv.resize(qkv.size() + 512);
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(256 * t);
    qkv.insert(qkv.end(), from, from + 256);
  }
  const Range rest = put(device, std::vector<float>(256));
  std::vector<std::uint32_t> places(tokens);
  for (std::size_t t = 0; t < tokens; ++t) places[t] = static_cast<std::uint32_t>(t);
  const Range kv = put(device, std::vector<std::uint32_t>(2 * 32 * 128));
  Operation operation;
  operation.kernel = Kernel::kStoreRows;
  operation.groups = {count, 3, 1};
  operation.operands = {put(device, qkv), rest, rest, rest, kv, put(device, places)};
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
