#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/backend/device_check.h"
#include "engine/backend/gpu/gpu_backend.h"
#include "engine/backend/gpu/packed_weights.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/evaluate.h"
#include "tests/engine/backend/gpu/device_models.h"
#include "tests/engine/backend/gpu/wrapped_device.h"
#include "tests/engine/backend/weight_values.h"

namespace efimd::test {

using engine::KvType;
using engine::TensorType;

namespace {

/// Which operations a device leaves out.
using LeftOut = std::function<bool(const engine::gpu::Operation&)>;

LeftOut all_of(engine::gpu::Kernel kernel) {
  return [kernel](const engine::gpu::Operation& each) { return each.kernel == kernel; };
}

/// Products of so many tokens.
LeftOut products_of(unsigned least, unsigned most) {
  return [=](const engine::gpu::Operation& each) {
    if (each.kernel != engine::gpu::Kernel::kMatmul) return false;
    kernels::MatmulSizes sizes;
    std::memcpy(&sizes, each.sizes.data(), sizeof sizes);
    return sizes.tokens >= least && sizes.tokens <= most;
  };
}

/// A device that never runs some operations.
class IdleDevice final : public WrappedDevice {
 public:
  IdleDevice(std::unique_ptr<engine::gpu::GpuDevice> device, LeftOut left_out)
      : WrappedDevice(std::move(device)), left_out_(std::move(left_out)) {}
  Result<void> run(std::span<const engine::gpu::Operation> operations) override {
    std::vector<engine::gpu::Operation> rest;
    for (const auto& operation : operations)
      if (!left_out_(operation)) rest.push_back(operation);
    return WrappedDevice::run(rest);
  }

 private:
  LeftOut left_out_;
};

Result<void> checked(const MemoryModel& model, std::unique_ptr<engine::gpu::GpuDevice> device,
                     KvType kv_type) {
  const auto backend = engine::gpu::make_gpu_backend(std::move(device), model.shape, model.weights,
                                                     {64, 64, kv_type});
  REQUIRE(backend);
  engine::CpuOptions cpu;
  cpu.threads = 2;
  cpu.kv_type = kv_type;
  return engine::check_device(**backend, model.shape, model.weights, cpu,
                              engine::gpu::WithOutput::kYes);
}

}  // namespace

void check_right_devices(const OpenDevice& open) {
  const auto check = [&](const Variety& variety, KvType kv_type) {
    auto device = open();
    if (!device) return;
    INFO(variety.name << ", " << tensor_type_name(variety.options.type) << ", KV "
                      << kv_type_name(kv_type));
    const MemoryModel model(variety.shape, variety.options);
    const auto good = checked(model, std::move(device), kv_type);
    INFO((good ? "" : good.error().message()));
    CHECK(good);
  };
  for (Variety variety : varieties()) {
    variety.options.type = variety.shape.experts > 0 ? TensorType::kF16 : TensorType::kQ8_0;
    check(variety, KvType::kF16);
    check(variety, KvType::kQ8);
  }
  Variety variety = wide(varieties()[1]);
  for (const TensorType type : kWeightTypes) {
    variety.options.type = type;
    check(variety, KvType::kF16);
  }
}

namespace {

/// A device that counts its fused products, and the kernels of the last list that was a step's.
class CountingDevice final : public WrappedDevice {
 public:
  struct Seen {
    std::size_t heads = 0, gates = 0, kernels_of_step = 0;
  };
  CountingDevice(std::unique_ptr<engine::gpu::GpuDevice> device, Seen& seen)
      : WrappedDevice(std::move(device)), seen_(seen) {}
  Result<void> run(std::span<const engine::gpu::Operation> operations) override {
    using engine::gpu::Kernel;
    std::size_t kernels = 0;
    for (const auto& operation : operations) {
      seen_.heads += operation.kernel == Kernel::kNormHeads;
      seen_.gates += operation.kernel == Kernel::kNormGates;
      kernels += operation.kernel != Kernel::kCopy;
    }
    if (kernels > 0) seen_.kernels_of_step = kernels;
    return WrappedDevice::run(operations);
  }

 private:
  Seen& seen_;
};

OpenDevice counted(const OpenDevice& open, CountingDevice::Seen& seen) {
  return [&]() -> std::unique_ptr<engine::gpu::GpuDevice> {
    auto device = open();
    return device ? std::make_unique<CountingDevice>(std::move(device), seen) : nullptr;
  };
}

}  // namespace

void check_fused_products(const OpenDevice& open) {
  CountingDevice::Seen seen;
  const auto check = [&](Variety variety, TensorType type) {
    INFO(tensor_type_name(type) << ", " << variety.name << ", heads of "
                                << variety.shape.head_width);
    variety.shape.layers = 1;
    variety.options.type = type;
    const MemoryModel model(variety.shape, variety.options);
    const auto tokens = random_tokens(29, model.shape.vocabulary, 1);
    const auto backend = on_device(model.shape, model.weights, counted(open, seen), KvType::kF16);
    if (!backend) return;
    const auto whole = evaluate(*backend, model, tokens, {64}, pages_from(5, 7));
    seen = {};
    REQUIRE(backend->write_page(21, marked_page(*backend, 1)));
    check_same_bits(evaluate(*backend, model, tokens, {1, 8, 2, 17, 1}, pages_from(20, 3)), whole);
    CHECK(page_of(*backend, 21) == marked_page(*backend, 1));  // after the sequence's
    // In steps of up to eight tokens; with weights of 16 bits in those of one.
    const bool quantized = engine::gpu::is_quantized(engine::gpu::packed_type(type));
    const std::size_t steps = quantized ? 4 : type == TensorType::kF32 ? 0 : 2;
    CHECK(seen.heads == steps);
    CHECK(seen.gates == steps);
    // Of the layer six or ten; of the last token the embedding and, for its logits, a norm and a product.
    CHECK(seen.kernels_of_step == (steps > 0 ? 6 : 10) + 3);
  };
  Variety of_types = wide(varieties()[1]);
  of_types.shape.feed_forward = of_types.shape.width;
  for (const TensorType type : kWeightTypes) check(of_types, type);
  // Rows of more groups, and of more pieces, than a warp begins with.
  of_types.shape.width = 1312;
  check(of_types, TensorType::kQ8_0);
  of_types.shape.width = 2080;
  check(of_types, TensorType::kF16);
  // Pairs that fill no block, some of which RoPE leaves.
  for (Variety odd : {varieties()[0], varieties()[1]}) {
    odd.shape.heads = 8;
    odd.shape.kv_heads = 1;
    odd.shape.head_width = 36;
    odd.shape.rope_width = 24;
    for (const TensorType type : {TensorType::kQ8_0, TensorType::kF16}) check(odd, type);
  }
}

FusedSteps fused_steps(const OpenDevice& open) {
  Variety variety = wide(varieties()[1]);
  variety.shape.layers = 1;
  variety.shape.feed_forward = variety.shape.width;
  variety.options.type = TensorType::kQ8_0;
  const MemoryModel model(variety.shape, variety.options);
  CountingDevice::Seen seen;
  const auto backend = on_device(model.shape, model.weights, counted(open, seen), KvType::kF16);
  REQUIRE(backend != nullptr);
  const auto seen_in = [&](int count) {
    seen = {};
    evaluate(*backend, model, random_tokens(count, model.shape.vocabulary, 1), {count},
             pages_from(0, 1));
    return seen;
  };
  const auto one = seen_in(1), two = seen_in(2);
  return {one.heads > 0, two.heads > 0, one.gates > 0, two.gates > 0};
}

namespace {

/// What the check of a device says of one that leaves operations out.
void check_left_out(const MemoryModel& model, std::unique_ptr<engine::gpu::GpuDevice> device,
                    LeftOut left_out) {
  const auto found = checked(
      model, std::make_unique<IdleDevice>(std::move(device), std::move(left_out)), KvType::kF16);
  REQUIRE(!found);
  CHECK(found.error().fault == Fault::kUnsupported);
  CHECK(found.error().what.find("disagrees with the CPU") != std::string::npos);
}

}  // namespace

void check_wrong_devices(const OpenDevice& open) {
  using engine::gpu::Kernel;
  Variety experts = varieties().back();
  REQUIRE(experts.shape.experts > 0);
  experts.options.type = TensorType::kF16;
  const MemoryModel model(experts.shape, experts.options);
  for (std::size_t kernel = 0; kernel + 1 < kernels::kKernels; ++kernel) {
    auto device = open();
    if (!device) return;
    const auto left_out = static_cast<Kernel>(kernel);
    // Without it the experts have any number.
    if (left_out == Kernel::kRoute) continue;
    const engine::gpu::DeviceLimits limits = device->limits();
    if (left_out == Kernel::kMatmulHalves && !limits.f16_products) continue;
    if (left_out == (limits.f16_attention ? Kernel::kAttention : Kernel::kAttentionTiles)) continue;
    if (left_out == Kernel::kNormHeads || left_out == Kernel::kNormGates) continue;  // below
    INFO("without kernel " << kernel);
    check_left_out(model, std::move(device), all_of(left_out));
  }
  Variety quantized = varieties()[1];
  quantized.options.type = TensorType::kQ8_0;
  const MemoryModel of_products(quantized.shape, quantized.options);
  for (const Kernel left_out : {Kernel::kNormHeads, Kernel::kNormGates}) {
    auto device = open();
    INFO("without kernel " << static_cast<int>(left_out));
    if (device && device->limits().fused_pairs_max > 0)
      check_left_out(of_products, std::move(device), all_of(left_out));
  }
  for (const auto& [least, most] : {std::pair{1U, 1U}, {2U, 8U}, {9U, 16U}, {17U, 99U}}) {
    auto device = open();
    if (!device) return;
    INFO("without products of " << least << " to " << most << " tokens");
    check_left_out(of_products, std::move(device), products_of(least, most));
  }
}

}  // namespace efimd::test
