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
  INFO((backend ? "" : backend.error().message()));
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
    INFO("without kernel " << kernel);
    check_left_out(model, std::move(device), all_of(left_out));
  }
  Variety quantized = varieties()[1];
  quantized.options.type = TensorType::kQ8_0;
  const MemoryModel of_products(quantized.shape, quantized.options);
  for (const auto& [least, most] : {std::pair{1U, 1U}, {4U, 16U}, {17U, 99U}}) {
    auto device = open();
    if (!device) return;
    INFO("without products of " << least << " to " << most << " tokens");
    check_left_out(of_products, std::move(device), products_of(least, most));
  }
}

}  // namespace efimd::test
