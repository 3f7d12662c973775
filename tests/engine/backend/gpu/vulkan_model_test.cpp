// Models of every architecture on the Vulkan device that there is, against the scalar CPU.
#include <catch2/catch.hpp>

#include "engine/backend/gpu/gpu_backend.h"
#include "tests/engine/backend/gpu/device_models.h"
#include "tests/engine/backend/gpu/split_models.h"
#include "tests/engine/backend/gpu/vulkan_devices.h"

namespace efimd::test {

using engine::KvType;
using engine::TensorType;

namespace {

void check_trained_model(int tokens, KvType kv_type, double tie) {
  auto opened = vulkan_device();
  if (!opened) return;
  const auto model = engine::Model::open(EFIMD_TRAINED_MODEL);
  REQUIRE(model);
  const engine::ModelShape& shape = (*model)->shape();
  const auto device = engine::gpu::make_gpu_backend(std::move(opened), shape, (*model)->weights(),
                                                    {64, 64, kv_type});
  REQUIRE(device);
  engine::CpuOptions options;
  options.isa = engine::Isa::kScalar;
  options.threads = 2;
  options.page_count = 64;
  options.kv_type = kv_type;
  const auto cpu = engine::make_cpu_backend(*model, options);
  REQUIRE(cpu);
  compare_greedy(**cpu, **device, shape, tokens, tie);
}

}  // namespace

TEST_CASE("Vulkan: heads of tokens share what they read only if a card has confirmed it") {
  const auto plain = plain_vulkan_device(), all = vulkan_device();
  if (!plain || !all) return;
  CHECK(plain->limits().shared_attention == engine::gpu::kConfirmedVariants.shared_attention);
  CHECK(all->limits().shared_attention);
}

TEST_CASE("Vulkan: the plain shaders alone have the bits of those that share") {
  const Variety variety = varieties()[1];
  check_same_logits({&variety, 1}, kHeld, plain_vulkan_device, [] { return vulkan_device(); });
}

TEST_CASE("Vulkan: every architecture's logits are the scalar CPU's, however a prompt is cut") {
  check_architectures([] { return vulkan_device(); });
}

TEST_CASE("Vulkan: a model's logits are the scalar CPU's at every level of a device") {
  for (int level = 0; level < 3; ++level) {
    INFO("level " << level);
    const auto open = [&] { return vulkan_device({.level_max = level}); };
    check_logits(wide(varieties()[1]), TensorType::kF16, 2e-3, open);
    check_logits(wide(varieties()[1]), TensorType::kQ6_K, 6e-2, open);
  }
}

TEST_CASE("Vulkan: a device that computes otherwise than the CPU is told") {
  check_right_devices([] { return vulkan_device(); });
  check_wrong_devices([] { return vulkan_device(); });
}

TEST_CASE("Vulkan: 96 greedy tokens of every architecture are the CPU's") {
  for (const Variety& variety : varieties())
    check_greedy(variety, TensorType::kF32, 96, 1e-3, [] { return vulkan_device(); });
}

TEST_CASE("Vulkan: 256 greedy tokens of a trained model are the CPU's") {
  check_trained_model(256, KvType::kF16, 1e-3);
}

TEST_CASE("Vulkan: 64 greedy tokens of a trained model with 8-bit KV are the CPU's") {
  check_trained_model(64, KvType::kQ8, 1e-2);
}

TEST_CASE("Vulkan: with 8-bit KV every architecture's logits are the scalar CPU's in 8 bits") {
  for (int level = 0; level < 2; ++level) {
    INFO("level " << level);
    check_architectures([&] { return vulkan_device({.level_max = level}); }, KvType::kQ8);
  }
}

TEST_CASE("Vulkan: 96 greedy tokens with 8-bit KV are the CPU's") {
  for (const Variety& variety : varieties())
    check_greedy(
        variety, TensorType::kF32, 96, 1e-2, [] { return vulkan_device(); }, KvType::kQ8);
}

TEST_CASE("Vulkan: a key bias of hundreds costs 8-bit KV nothing, for it is not quantized") {
  check_huge_key_bias([] { return vulkan_device(); });
}

TEST_CASE("Vulkan: rows of two sequences in one step have the bits of each alone") {
  for (const KvType kv_type : {KvType::kF16, KvType::kQ8})
    check_sequences_together([] { return vulkan_device(); }, kv_type);
}

TEST_CASE("Vulkan: with 8-bit KV a sequence may be longer than the device's pages") {
  check_repeated_pages([] { return vulkan_device(); });
}

TEST_CASE("Vulkan: pages that go to another device of the kind and back are read as they were") {
  for (const KvType kv_type : {KvType::kF16, KvType::kQ8})
    check_pages([] { return vulkan_device(); }, kv_type);
}

TEST_CASE("Vulkan: pages that are on their way are there when they are needed") {
  check_page_transfer([] { return vulkan_device(); });
}

TEST_CASE("Vulkan: a model that does not fit has some layers there and the others on the CPU") {
  check_split([] { return vulkan_device(); });
}

TEST_CASE("Vulkan: a tensor larger than one operand is bound in parts") {
  // The vocabulary's 3000 rows of 384 bytes make three parts; the KV of a layer is just one.
  const auto open = [] { return vulkan_device({.range_bytes_max = 512 * 1024}); };
  Variety variety = varieties()[1];
  variety.shape.vocabulary = 3000;
  check_logits(variety, TensorType::kF32, 2e-3, open);
}

}  // namespace efimd::test
