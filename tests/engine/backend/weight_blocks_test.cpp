// Blocks of quantized weights: what the scalar code reads out of them, and what the tests' writer
// puts in, each against values taken from the layout alone (weight_values.cpp).
#include <algorithm>
#include <cmath>

#include "engine/backend/cpu/cpu_weights.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/weight_values.h"
#include "tests/support/model_writer.h"

namespace efimd::test {
namespace {

using engine::TensorType;
using engine::TensorView;

TEST_CASE("a row reads as its layout says in every type, from any byte") {
  std::mt19937 random(1);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    for (const std::size_t offset : {0, 1}) {
      const TensorView tensor = random_tensor(storage, type, 3, 768, 1, random, offset);
      std::vector<float> row(768, NAN);
      for (int n = 0; n < 3; ++n) {
        engine::cpu::read_row(engine::cpu::weights_of(tensor), n, row.data());
        std::vector<Expected> expected;
        // One rounding of the product, one of the difference, of numbers up to 2.
        for (int k = 0; k < 768; ++k) expected.push_back({element(tensor, n, k), 2e-7});
        INFO(tensor_type_name(type) << ", row " << n);
        check_close(row, expected);
      }
    }
  }
}

/// How far apart the levels of `type` are over values in -1 .. 1, with what the rounding of scales to
/// six bits adds.
double step_of(TensorType type) {
  switch (type) {
    case TensorType::kQ8_0:
      return 1.0 / 127;
    case TensorType::kQ4_0:
      return 1.0 / 4;  // the top value may lie half a level after the last one
    case TensorType::kQ5_0:
      return 1.0 / 8;
    case TensorType::kQ4_1:
      return 2.0 / 15;
    case TensorType::kQ5_1:
      return 2.0 / 31;
    case TensorType::kQ4_K:
      return 2.0 / 15 + 4.0 / 63;
    case TensorType::kQ5_K:
      return 2.0 / 31 + 4.0 / 63;
    case TensorType::kQ6_K:
      return 1.0 / 16 + 1.0 / 127;
    default:
      return 1.0 / 128;  // BF16's
  }
}

TEST_CASE("what the tests' writer encodes reads back within half a level") {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> values(1024);
  for (float& value : values) value = uniform(random);
  std::fill(values.begin() + 256, values.begin() + 512, 0.0F);
  for (const TensorType type : kWeightTypes) {
    const std::string bytes = encode_tensor(values, type);
    const TensorView tensor{type, reinterpret_cast<const std::byte*>(bytes.data()), 1, 1024};
    REQUIRE(bytes.size() == tensor.row_bytes());
    std::vector<Expected> expected;
    for (const float value : values)
      expected.push_back({value, value == 0 ? 1e-12 : 0.5 * step_of(type) + 1e-3});
    std::vector<float> row(1024, NAN);
    engine::cpu::read_row(engine::cpu::weights_of(tensor), 0, row.data());
    INFO(tensor_type_name(type));
    check_close(row, expected);
  }
}

}  // namespace
}  // namespace efimd::test
