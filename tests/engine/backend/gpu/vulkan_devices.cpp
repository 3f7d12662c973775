#include "tests/engine/backend/gpu/vulkan_devices.h"

#include <catch2/catch.hpp>

namespace efimd::test {

namespace {

std::unique_ptr<engine::gpu::GpuDevice> opened(engine::vulkan::VulkanOptions options) {
  options.software = engine::vulkan::VulkanOptions::Software::kIfNothing;
  options.on_validation = [](const std::string& message) { FAIL_CHECK(message); };
  auto device = engine::vulkan::open_vulkan_device(options);
  if (!device) {
    WARN("SKIPPED  Vulkan: " << device.error().message());
    return nullptr;
  }
  return *std::move(device);
}

}  // namespace

std::unique_ptr<engine::gpu::GpuDevice> vulkan_device(engine::vulkan::VulkanOptions options) {
  options.variants = engine::gpu::kAllVariants;
  return opened(std::move(options));
}

std::unique_ptr<engine::gpu::GpuDevice> plain_vulkan_device() { return opened({}); }

}  // namespace efimd::test
