// The CUDA device on a card, if there is one. scripts/gpu reports it in the environment variable EFIMD_CARD: `there` or
// `under-a-tool`.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/backend/cuda/cuda_device.h"
#include "tests/engine/backend/gpu/attention_operations.h"
#include "tests/engine/backend/gpu/device_models.h"
#include "tests/engine/backend/gpu/kv8_operations.h"
#include "tests/engine/backend/gpu/operations.h"

namespace efimd::test {
namespace {

using engine::KvType;
using engine::TensorType;
using engine::cuda::CudaOptions;
using engine::cuda::open_cuda_device;

/// The card; null where there is none, which is told. One that was there, and one of which scripts/gpu says so, must be usable:
/// else the case ends as failed.
std::unique_ptr<engine::gpu::GpuDevice> real_device_with(const CudaOptions& options) {
  static bool there = std::getenv("EFIMD_CARD") != nullptr;
  auto device = open_cuda_device(options);
  there = there || device.has_value();
  if (device) return *std::move(device);
  INFO(device.error().message());
  REQUIRE(!there);
  WARN("SKIPPED  CUDA on a card: " << device.error().message());
  return nullptr;
}
std::unique_ptr<engine::gpu::GpuDevice> real_device() {
  return real_device_with({.variants = engine::gpu::kAllVariants});
}
std::unique_ptr<engine::gpu::GpuDevice> plain_card() { return real_device_with({.variants = {}}); }

void with_card(void (*check)(engine::gpu::GpuDevice&)) {
  if (const auto device = real_device()) check(*device);
}
/// A device is held meanwhile: with the last of them the card's context goes, which is slow to make.
void on_card(const std::function<void(const OpenDevice&)>& check) {
  if (const auto held = real_device()) check(real_device);
}

/// If each kernel takes many times as long, repetitions are done once.
bool under_a_tool() {
  const char* card = std::getenv("EFIMD_CARD");
  return card != nullptr && std::string_view(card) == "under-a-tool";
}

}  // namespace

TEST_CASE("CUDA on a card: products agree with the specification") {
  if (const auto device = real_device()) WARN("CUDA on " << device->name());
  with_card(check_products);
}

TEST_CASE("CUDA on a card: products of prompts agree with the specification") {
  with_card(check_prompt_products);
}

TEST_CASE("CUDA on a card: a product's bits are the same in steps of any size") {
  if (const auto device = real_device()) check_batch_invariance(*device, LargeTiles::kYes);
}

TEST_CASE("CUDA on a card: inputs are quantized as the specification says") {
  with_card(check_quantize);
}

TEST_CASE("CUDA on a card: norms and activations write what products read") {
  with_card(check_forms);
}

TEST_CASE("CUDA on a card: what goes to f16 is rounded to nearest even") {
  with_card(check_halves);
}

TEST_CASE("CUDA on a card: attention over f16 KV agrees with f64") {
  with_card(check_attention_in_halves);
}

TEST_CASE("CUDA on a card: KV goes to 8 bits as the specification says") {
  with_card(check_store_in_8_bits);
}

TEST_CASE("CUDA on a card: attention over 8-bit KV agrees with f64") {
  with_card(check_attention_in_8_bits);
}

TEST_CASE("CUDA on a card: every architecture's logits are the scalar CPU's") {
  on_card([](const OpenDevice& open) { check_architectures(open); });
}

TEST_CASE("CUDA on a card: with 8-bit KV every architecture's logits are the scalar CPU's") {
  on_card([](const OpenDevice& open) { check_architectures(open, KvType::kQ8); });
}

TEST_CASE("CUDA on a card: a huge bias of keys costs 8-bit KV nothing") {
  on_card(check_huge_key_bias);
}

TEST_CASE("CUDA on a card: pages that are on their way are there when they are needed") {
  on_card(check_page_transfer);
}

TEST_CASE("CUDA on a card: pages that go to another device and back are read as they were") {
  on_card([](const OpenDevice& open) {
    for (const KvType kv_type : {KvType::kF16, KvType::kQ8}) check_pages(open, kv_type);
  });
}

TEST_CASE("CUDA on a card: rows of two sequences in one step have the bits of each alone") {
  on_card([](const OpenDevice& open) {
    for (const KvType kv_type : {KvType::kF16, KvType::kQ8})
      check_sequences_together(open, kv_type);
  });
}

TEST_CASE("CUDA on a card: the check of a device finds nothing") { on_card(check_right_devices); }

TEST_CASE("CUDA on a card: an operation that is left out is told") { on_card(check_wrong_devices); }

TEST_CASE("CUDA on a card: the plain kernels alone agree with the specification") {
  const auto held = real_device();
  if (!held) return;
  check_products(*plain_card());
  check_attention_in_halves(*plain_card());
  check_architectures(plain_card);
}

TEST_CASE("CUDA on a card: a step has the same bits each time") {
  const int rounds = under_a_tool() ? 1 : 20;  // what depends on who comes first may go well once
  on_card([&](const OpenDevice& open) {
    for (int round = 0; round < rounds; ++round) check_same_logits(varieties(), kHeld, open, open);
  });
}

TEST_CASE("CUDA on a card: greedy tokens of every architecture are the CPU's") {
  const int tokens = under_a_tool() ? 16 : 256;
  on_card([&](const OpenDevice& open) {
    for (const Variety& variety : varieties())
      check_greedy(variety, TensorType::kF32, tokens, 1e-3, open);
  });
}

}  // namespace efimd::test
