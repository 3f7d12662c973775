#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/backend/cpu/cpu_weights.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/input_rows.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd::test {
namespace {

using namespace engine::cpu;
using engine::Isa;
using engine::TensorType;
using engine::TensorView;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Of what a product adds up, how much rounding may take away.
double rounding(Isa isa, TensorType type) {
  const bool to_bfloat = (isa == Isa::kAvx512Bf16 || isa == Isa::kAmx) && type == TensorType::kBF16;
  return to_bfloat ? 1.0 / 256 : 3e-6;
}

/// [T][N] in f64, with a tolerance from the size of the summands.
std::vector<Expected> reference(Isa isa, const TensorView& tensor, const InputRows& rows) {
  std::vector<Expected> expected;
  std::vector<double> row(static_cast<std::size_t>(tensor.cols));
  expected.resize(static_cast<std::size_t>(rows.tokens * tensor.rows));
  for (std::int64_t n = 0; n < tensor.rows; ++n) {
    for (std::int64_t k = 0; k < tensor.cols; ++k)
      row[static_cast<std::size_t>(k)] = element(tensor, n, k);
    for (int t = 0; t < rows.tokens; ++t) {
      double sum = 0;
      double size = 0;
      for (int k = 0; k < rows.cols; ++k) {
        const double product = row[static_cast<std::size_t>(k)] * rows.at(tensor.type, t, k);
        sum += product;
        size += std::fabs(product);
      }
      expected[static_cast<std::size_t>(t * tensor.rows + n)] = {
          sum, rounding(isa, tensor.type) * size + 1e-30};
    }
  }
  return expected;
}

/// The whole product by the kernels of `isa`, in pieces of `piece` rows, over NaN.
std::vector<float> product(Isa isa, const TensorView& tensor, const InputRows& rows,
                           int piece = 1 << 30) {
  std::vector<float> out(static_cast<std::size_t>(rows.tokens * tensor.rows), kNan);
  const Weights weights = weights_of(tensor);
  for (int first = 0; first < weights.rows;) {
    const int last = std::min(weights.rows, first + std::min(piece, weights.rows));
    kernels_of(isa).matmul(
        weights, {first, last}, rows.inputs(),
        {out.data(), static_cast<std::size_t>(weights.rows), nullptr, Store::kSet});
    first = last;
  }
  return out;
}

void check_product(const TensorView& tensor, const InputRows& rows) {
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa) << ", " << tensor_type_name(tensor.type) << ", N " << tensor.rows << ", K "
                       << tensor.cols << ", T " << rows.tokens);
    check_close(product(isa, tensor, rows), reference(isa, tensor, rows));
  }
}

/// Q8_0 rows with every quant and scale chosen by a function of (row, k).
template <class Quant, class Scale>
TensorView q8_0_tensor(std::deque<std::vector<std::byte>>& storage, int rows, int cols, Quant quant,
                       Scale scale) {
  std::mt19937 random(1);
  const TensorView tensor = random_tensor(storage, TensorType::kQ8_0, rows, cols, 1, random);
  auto* data = const_cast<std::byte*>(tensor.data);
  for (int n = 0; n < rows; ++n) {
    for (int k = 0; k < cols; ++k) {
      std::byte* block = data + static_cast<std::size_t>(n) * tensor.row_bytes() + k / 32 * 34;
      const std::uint16_t half = scale(n, k / 32);
      std::memcpy(block, &half, 2);
      block[2 + k % 32] = static_cast<std::byte>(static_cast<std::int8_t>(quant(n, k)));
    }
  }
  return tensor;
}

}  // namespace

TEST_CASE("a product agrees with f64 at every input width", "[one-thread]") {
  std::mt19937 random(1);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    for (const int wanted : {32, 64, 96, 320, 896, 4864}) {
      const int cols = cols_of(type, wanted);
      check_product(random_tensor(storage, type, 17, cols, 1, random), InputRows(3, cols, random));
    }
  }
}

TEST_CASE("a product agrees with f64 at every number of rows and tokens", "[one-thread]") {
  std::mt19937 random(2);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    const int cols = cols_of(type, 96);
    for (const int rows : {1, 7, 8, 9, 15, 16, 17, 33}) {
      const TensorView tensor = random_tensor(storage, type, rows, cols, 1, random);
      for (const int tokens :
           {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 64, 65})
        check_product(tensor, InputRows(tokens, cols, random));
    }
  }
}

TEST_CASE("a product over columns that fill no register agrees with f64") {
  std::mt19937 random(3);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16})
    for (const int cols : {1, 3, 7, 9, 15, 17, 31, 50})
      check_product(random_tensor(storage, type, 5, cols, 1, random), InputRows(5, cols, random));
}

TEST_CASE("weights may start at any byte") {
  std::mt19937 random(4);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    const int cols = cols_of(type, 64);
    for (const std::size_t offset : {1, 2, 3})
      check_product(random_tensor(storage, type, 18, cols, 1, random, offset),
                    InputRows(5, cols, random));
  }
}

TEST_CASE("quants at their extremes do not overflow") {
  std::deque<std::vector<std::byte>> storage;
  const auto one = [](int, int) { return std::uint16_t{0x3C00}; };
  for (const int cols : {32, 896, 4864}) {
    const auto extreme = [](int n, int k) {
      return n == 0 ? -128 : n == 1 ? 127 : (n + k) % 2 ? -128 : 127;
    };
    const TensorView tensor = q8_0_tensor(storage, 17, cols, extreme, one);
    std::vector<float> inputs(static_cast<std::size_t>(4 * cols));
    for (int i = 0; i < 4 * cols; ++i) {
      const int t = i / cols;
      inputs[static_cast<std::size_t>(i)] = t == 0        ? 1.0F
                                            : t == 1      ? -1.0F
                                            : (i + t) % 2 ? 1.0F
                                                          : -1.0F;
    }
    check_product(tensor, InputRows(4, cols, inputs));
  }
}

TEST_CASE("scales that are zero, negative, subnormal or the largest keep their meaning") {
  std::mt19937 random(5);
  std::deque<std::vector<std::byte>> storage;
  const std::uint16_t scales[] = {0x0000, 0x8000, 0xB800, 0x0001, 0x7BFF, 0xFBFF, 0x3C00};
  const TensorView tensor = q8_0_tensor(
      storage, 19, 224, [](int n, int k) { return (n * 31 + k * 17) % 255 - 127; },
      [&](int n, int group) { return scales[(n + group) % 7]; });
  check_product(tensor, InputRows(5, 224, random));
}

TEST_CASE("inputs of zeros give zero, and one outlier does not spill over") {
  std::mt19937 random(6);
  std::deque<std::vector<std::byte>> storage;
  const TensorView tensor = random_tensor(storage, TensorType::kQ8_0, 16, 96, 1, random);
  std::vector<float> inputs(192, 0.0F);
  inputs[96 + 40] = 1e6F;
  inputs[96 + 41] = 1.0F;
  const InputRows rows(2, 96, inputs);
  check_product(tensor, rows);
  for (const Isa isa : isas_here()) {
    const std::vector<float> out = product(isa, tensor, rows);
    CHECK(std::all_of(out.begin(), out.begin() + 16, [](float value) { return value == 0.0F; }));
  }
}

TEST_CASE("a bias is added once and kAdd adds to what was there") {
  std::mt19937 random(7);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    const int cols = cols_of(type, 64);
    const TensorView tensor = random_tensor(storage, type, 21, cols, 1, random);
    const InputRows rows(3, cols, random);
    const std::vector<float> bias = InputRows::random_values(21, random);
    for (const Isa isa : isas_here()) {
      const std::vector<float> plain = product(isa, tensor, rows);
      std::vector<float> out(plain.size(), 100.0F);
      kernels_of(isa).matmul(weights_of(tensor), {0, 21}, rows.inputs(),
                             {out.data(), 21, bias.data(), Store::kAdd});
      std::vector<Expected> expected;
      for (std::size_t i = 0; i < plain.size(); ++i)
        expected.push_back({100.0 + plain[i] + bias[i % 21], 3e-5});
      INFO(isa_name(isa) << ", " << tensor_type_name(type));
      check_close(out, expected);
    }
  }
}

TEST_CASE("rows outside the asked range are not written") {
  std::mt19937 random(8);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    const int cols = cols_of(type, 64);
    const TensorView tensor = random_tensor(storage, type, 40, cols, 1, random);
    const InputRows rows(2, cols, random);
    for (const Isa isa : isas_here()) {
      std::vector<float> out(80, kNan);
      kernels_of(isa).matmul(weights_of(tensor), {3, 22}, rows.inputs(),
                             {out.data(), 40, nullptr, Store::kSet});
      for (std::size_t i = 0; i < out.size(); ++i) {
        INFO(isa_name(isa) << ", " << tensor_type_name(type) << ", element " << i);
        CHECK(std::isnan(out[i]) == (i % 40 < 3 || i % 40 >= 22));
      }
    }
  }
}

TEST_CASE("a product is the same bit for bit in every step and tile", "[one-thread]") {
  std::mt19937 random(9);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    for (const int wanted : {96, 1120}) {
      const int cols = cols_of(type, wanted);
      const TensorView tensor = random_tensor(storage, type, 37, cols, 1, random);
      const InputRows all(67, cols, random);
      for (const Isa isa : isas_here()) {
        const std::vector<float> together = product(isa, tensor, all);
        for (const int piece : {1, 3, 16})
          check_same_bits(product(isa, tensor, all, piece), together);
        for (const int tokens : {1, 2, 5, 8, 64}) {
          INFO(isa_name(isa) << ", " << tensor_type_name(type) << ", steps of " << tokens);
          for (int t = 0; t + tokens <= all.tokens; t += tokens) {
            const auto begin = all.values.begin() + t * cols;
            const InputRows some(tokens, cols, {begin, begin + tokens * cols});
            const std::vector<float> out = product(isa, tensor, some);
            check_same_bits(
                out, std::span(together).subspan(static_cast<std::size_t>(t * 37), out.size()));
          }
        }
      }
    }
  }
}

TEST_CASE("no load passes the end of the weights") {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::mt19937 random(10);
  std::deque<std::vector<std::byte>> storage;
  void* mapped =
      ::mmap(nullptr, 17 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  auto* guard = static_cast<std::byte*>(mapped) + 16 * page;
  REQUIRE(::mprotect(guard, page, PROT_NONE) == 0);
  for (const TensorType type : kWeightTypes) {
    const int cols = cols_of(type, 96);
    for (const int rows : {1, 5, 16, 17}) {
      TensorView tensor = random_tensor(storage, type, rows, cols, 1, random);
      const std::size_t bytes = static_cast<std::size_t>(rows) * tensor.row_bytes();
      std::memcpy(guard - bytes, tensor.data, bytes);
      tensor.data = guard - bytes;
      check_product(tensor, InputRows(2, cols, random));
    }
  }
  ::munmap(mapped, 17 * page);
}

}  // namespace efimd::test
