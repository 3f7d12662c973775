// The order of sums where a driver chooses the size of subgroups.
#include <catch2/catch.hpp>

#include "engine/backend/vulkan/subgroups.h"
#include "engine/backend/vulkan/vulkan_api.h"
#include "tests/engine/backend/gpu/vulkan_devices.h"

namespace efimd::test {

using engine::gpu::Kernel;
using engine::vulkan::Subgroups;
using engine::vulkan::VulkanApi;
using engine::vulkan::VulkanOptions;

namespace {

constexpr std::uint32_t kAmd = 0x1002, kIntel = 0x8086, kNvidia = 0x10DE;

/// A driver of subgroups of several sizes, none of which a pipeline may ask for.
PFN_vkGetPhysicalDeviceProperties2 real_properties = nullptr;
PFN_vkGetPhysicalDeviceFeatures2 real_features = nullptr;

template <class Wanted>
Wanted* in_chain(void* chain, VkStructureType type) {
  for (auto* each = static_cast<VkBaseOutStructure*>(chain); each != nullptr; each = each->pNext)
    if (each->sType == type) return reinterpret_cast<Wanted*>(each);
  return nullptr;
}
VKAPI_ATTR void VKAPI_CALL with_two_sizes(VkPhysicalDevice device,
                                          VkPhysicalDeviceProperties2* properties) {
  real_properties(device, properties);
  if (auto* sizes = in_chain<VkPhysicalDeviceSubgroupSizeControlProperties>(
          properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES))
    sizes->maxSubgroupSize = 2 * sizes->minSubgroupSize;
}
VKAPI_ATTR void VKAPI_CALL without_choice(VkPhysicalDevice device,
                                          VkPhysicalDeviceFeatures2* features) {
  real_features(device, features);
  if (auto* control = in_chain<VkPhysicalDeviceSubgroupSizeControlFeatures>(
          features->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES))
    control->subgroupSizeControl = VK_FALSE;
}

}  // namespace

TEST_CASE("Vulkan: subgroups have a size that 32 threads fill, of those that a device has") {
  const auto size = [](std::uint32_t vendor, std::uint32_t usual, std::uint32_t least,
                       std::uint32_t most, Kernel kernel) {
    return Subgroups{true, usual, least, most, true, vendor}.size_for(kernel);
  };
  CHECK(size(kAmd, 64, 32, 64, Kernel::kMatmul) == 32);  // RDNA
  CHECK(size(kAmd, 64, 64, 64, Kernel::kMatmul) == 64);  // GCN
  CHECK(size(kNvidia, 32, 32, 32, Kernel::kAttention) == 32);
  CHECK(size(kIntel, 32, 8, 32, Kernel::kMatmul) == 16);
  CHECK(size(kIntel, 32, 8, 32, Kernel::kAttention) == 8);
  CHECK(size(kIntel, 32, 16, 32, Kernel::kAttention) == 16);  // Xe2
  CHECK(size(kIntel, 32, 8, 32, Kernel::kEmbedRows) == 0);
  CHECK(Subgroups{true, 32, 8, 32, false, kIntel}.size_for(Kernel::kMatmul) == 0);
}

TEST_CASE("Vulkan: a device whose pipelines may have subgroups of any size adds without them") {
  VulkanOptions options;
  options.adjust_instance = [](VulkanApi& api) {
    real_properties = api.GetPhysicalDeviceProperties2;
    real_features = api.GetPhysicalDeviceFeatures2;
    api.GetPhysicalDeviceProperties2 = with_two_sizes;
    api.GetPhysicalDeviceFeatures2 = without_choice;
  };
  if (const auto device = vulkan_device(options)) CHECK(device->name().ends_with("plain"));
}

}  // namespace efimd::test
