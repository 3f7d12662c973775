#pragma once

#include <cstdint>
#include <vector>

#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/vulkan/vulkan_api.h"

namespace efimd::engine::vulkan {

/// The memory types of a device for such a buffer, best first. On a card, device buffers never lie
/// in the host's memory. A model that does not fit is refused, because over the bus it would be
/// slower than on the CPU.
std::vector<std::uint32_t> memory_types(const VkPhysicalDeviceMemoryProperties& memory,
                                        gpu::Memory use, VkPhysicalDeviceType device);

/// Whether the host sees what the device wrote only after vkInvalidateMappedMemoryRanges.
bool needs_invalidation(VkMemoryPropertyFlags type);

}  // namespace efimd::engine::vulkan
