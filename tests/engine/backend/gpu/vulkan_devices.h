#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/backend/vulkan/vulkan_device.h"

namespace efimd::test {

/// Opens the Vulkan device, with the validation layer and its synchronization checks; each message fails the test that
/// runs. Null, with a line that says so, where there is none.
std::unique_ptr<engine::gpu::GpuDevice> vulkan_device(engine::vulkan::VulkanOptions options = {});
/// The same without what no card has confirmed.
std::unique_ptr<engine::gpu::GpuDevice> plain_vulkan_device();

}  // namespace efimd::test
