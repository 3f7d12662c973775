#include "engine/backend/vulkan/memory_types.h"

#include <algorithm>

namespace efimd::engine::vulkan {

namespace {

using Flags = VkMemoryPropertyFlags;
constexpr Flags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr Flags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr Flags kCoherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr Flags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
/// Of debuggers, at the cost of the caches, and of protected content.
constexpr Flags kNever = VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                         VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |
                         VK_MEMORY_PROPERTY_PROTECTED_BIT;

std::vector<Flags> wishes_of(gpu::Memory use, VkPhysicalDeviceType device) {
  switch (use) {
    case gpu::Memory::kDevice:
      if (device == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) return {kLocal};
      return {kLocal, 0};
    case gpu::Memory::kHostWrites:  // the device's memory that a host reaches may be small
      return {kVisible | kCoherent | kLocal, kVisible | kCoherent};
    case gpu::Memory::kHostReads:  // uncached, a read takes longer than the copy
      return {kVisible | kCoherent | kCached, kVisible | kCached, kVisible | kCoherent};
  }
  return {};
}

}  // namespace

std::vector<std::uint32_t> memory_types(const VkPhysicalDeviceMemoryProperties& memory,
                                        gpu::Memory use, VkPhysicalDeviceType device) {
  std::vector<std::uint32_t> types;
  for (const Flags wish : wishes_of(use, device))
    for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      const Flags has = memory.memoryTypes[i].propertyFlags;
      if ((has & wish) == wish && (has & kNever) == 0 && std::ranges::count(types, i) == 0)
        types.push_back(i);
    }
  return types;
}

bool needs_invalidation(VkMemoryPropertyFlags type) {
  return (type & kVisible) != 0 && (type & kCoherent) == 0;
}

}  // namespace efimd::engine::vulkan
