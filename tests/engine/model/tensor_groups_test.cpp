#include "engine/model/tensor_groups.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/engine/model/open_model.h"
#include "tests/support/model_writer.h"

namespace efimd::test {
namespace {

using engine::TensorGroup;
using engine::TensorType;

TensorGroup group(const std::vector<TensorGroup>& groups, const std::string& name) {
  const auto found = std::ranges::find(groups, name, &TensorGroup::name);
  REQUIRE(found != groups.end());
  return *found;
}

}  // namespace

TEST_CASE("the same part of every layer is one group, with each type that it has") {
  GgufWriter writer = tiny_model({});
  const std::vector<float> values(64 * 128, 0.5F);
  writer.tensor({"blk.1.ffn_up.weight",
                 {64, 128},
                 static_cast<std::uint32_t>(TensorType::kQ8_0),
                 encode_tensor(values, TensorType::kQ8_0),
                 {}});
  const auto model = opened(writer);
  const auto groups = engine::tensor_groups(model->file());
  const TensorGroup up = group(groups, "ffn_up");
  REQUIRE(up.parts.size() == 2);
  CHECK(up.parts[0].type == TensorType::kF32);
  CHECK(up.parts[0].tensors == 1);
  CHECK(up.parts[0].bytes == 64 * 128 * 4);
  CHECK(up.parts[1].type == TensorType::kQ8_0);
  CHECK(up.parts[1].bytes == 64 * 128 / 32 * 34);
  CHECK(group(groups, "ffn_gate").parts.size() == 1);
  CHECK(group(groups, "ffn_gate").parts[0].tensors == 2);
  CHECK(group(groups, "norms and biases").parts[0].tensors == 5);
}

TEST_CASE("the groups hold all bytes of the weights") {
  const auto model = opened(tiny_model({}));
  std::uint64_t sum = 0;
  for (const TensorGroup& each : engine::tensor_groups(model->file())) sum += each.bytes();
  CHECK(sum == model->weight_bytes());
}

}  // namespace efimd::test
