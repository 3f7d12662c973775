// Which memory a Vulkan device's buffers lie in.
#include <catch2/catch.hpp>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "engine/backend/vulkan/memory_types.h"
#include "engine/backend/vulkan/vulkan_api.h"
#include "tests/engine/backend/gpu/vulkan_devices.h"

namespace efimd::test {

using engine::gpu::Memory;
using engine::vulkan::memory_types;
using engine::vulkan::VulkanApi;
using engine::vulkan::VulkanOptions;

namespace {

using Types = std::vector<std::uint32_t>;
constexpr VkMemoryPropertyFlags kLocal = 1, kVisible = 2, kCoherent = 4, kCached = 8,
                                kProtected = 0x20, kAmd = 0xC0;
constexpr auto kCard = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
constexpr auto kIntegrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;

VkPhysicalDeviceMemoryProperties memory_of(std::initializer_list<VkMemoryPropertyFlags> types) {
  VkPhysicalDeviceMemoryProperties memory = {};
  for (const VkMemoryPropertyFlags each : types)
    memory.memoryTypes[memory.memoryTypeCount++] = {each, 0};
  return memory;
}

/// A driver with memory that is not cached, and with cached memory that is not coherent.
PFN_vkGetPhysicalDeviceMemoryProperties real_memory = nullptr;
PFN_vkGetBufferMemoryRequirements real_requirements = nullptr;
PFN_vkAllocateMemory real_allocate = nullptr;
PFN_vkInvalidateMappedMemoryRanges real_invalidate = nullptr;
int invalidated = 0;

VKAPI_ATTR void VKAPI_CALL without_shared_cache(VkPhysicalDevice device,
                                                VkPhysicalDeviceMemoryProperties* memory) {
  real_memory(device, memory);
  memory->memoryTypeCount = 2;
  memory->memoryTypes[0].propertyFlags = kLocal | kVisible | kCoherent;
  memory->memoryTypes[1] = {kLocal | kVisible | kCached, 0};
}
VKAPI_ATTR void VKAPI_CALL either_type(VkDevice device, VkBuffer buffer,
                                       VkMemoryRequirements* needs) {
  real_requirements(device, buffer, needs);
  needs->memoryTypeBits = 3;
}
VKAPI_ATTR VkResult VKAPI_CALL of_the_first(VkDevice device, const VkMemoryAllocateInfo* info,
                                            const VkAllocationCallbacks* callbacks,
                                            VkDeviceMemory* memory) {
  VkMemoryAllocateInfo first = *info;
  first.memoryTypeIndex = 0;
  return real_allocate(device, &first, callbacks, memory);
}
VKAPI_ATTR VkResult VKAPI_CALL count_invalidated(VkDevice device, std::uint32_t count,
                                                 const VkMappedMemoryRange* ranges) {
  invalidated += static_cast<int>(count);
  return real_invalidate(device, count, ranges);
}

}  // namespace

TEST_CASE("Vulkan: on a card, the device's buffers are the card's, and never the host's") {
  const auto nvidia = memory_of({0, kLocal, kVisible | kCoherent, kVisible | kCoherent | kCached,
                                 kLocal | kVisible | kCoherent});
  CHECK(memory_types(nvidia, Memory::kDevice, kCard) == Types{1, 4});
  CHECK(memory_types(nvidia, Memory::kHostWrites, kCard) == Types{4, 2, 3});
  CHECK(memory_types(nvidia, Memory::kHostReads, kCard) == Types{3, 2, 4});
}

TEST_CASE("Vulkan: memory for debuggers and for protected content is not taken") {
  const auto amd = memory_of({kLocal, kVisible | kCoherent, kLocal | kVisible | kCoherent,
                              kVisible | kCoherent | kCached, kLocal | kAmd,
                              kLocal | kVisible | kCoherent | kAmd,
                              kVisible | kCoherent | kCached | kAmd, kLocal | kProtected});
  CHECK(memory_types(amd, Memory::kDevice, kCard) == Types{0, 2});
  CHECK(memory_types(amd, Memory::kDevice, kIntegrated) == Types{0, 2, 1, 3});
  CHECK(memory_types(amd, Memory::kHostWrites, kCard) == Types{2, 1, 3});
  CHECK(memory_types(amd, Memory::kHostReads, kCard) == Types{3, 1, 2});
}

TEST_CASE("Vulkan: the host reads from cached memory, even where it is not coherent") {
  // Intel's integrated GPUs with a cache that the processor shares, and without.
  const auto shared = memory_of({kLocal, kLocal | kVisible | kCoherent,
                                 kLocal | kVisible | kCoherent | kCached, kLocal | kProtected});
  CHECK(memory_types(shared, Memory::kHostReads, kIntegrated) == Types{2, 1});
  const auto apart =
      memory_of({kLocal | kVisible | kCoherent, kLocal | kVisible | kCached, kLocal | kProtected});
  CHECK(memory_types(apart, Memory::kDevice, kIntegrated) == Types{0, 1});
  CHECK(memory_types(apart, Memory::kHostWrites, kIntegrated) == Types{0});
  CHECK(memory_types(apart, Memory::kHostReads, kIntegrated) == Types{1, 0});
  CHECK(engine::vulkan::needs_invalidation(apart.memoryTypes[1].propertyFlags));
  CHECK(!engine::vulkan::needs_invalidation(apart.memoryTypes[0].propertyFlags));
}

TEST_CASE("Vulkan: what is not coherent is invalidated before the host reads it, whoever waits") {
  VulkanOptions options;
  options.adjust_instance = [](VulkanApi& api) {
    real_memory = api.GetPhysicalDeviceMemoryProperties;
    api.GetPhysicalDeviceMemoryProperties = without_shared_cache;
  };
  options.adjust = [](VulkanApi& api) {
    real_requirements = api.GetBufferMemoryRequirements;
    real_allocate = api.AllocateMemory;
    real_invalidate = api.InvalidateMappedMemoryRanges;
    api.GetBufferMemoryRequirements = either_type;
    api.AllocateMemory = of_the_first;
    api.InvalidateMappedMemoryRanges = count_invalidated;
  };
  const auto device = vulkan_device(options);
  if (!device) return;
  const auto from = device->allocate(64, Memory::kHostWrites);
  const auto to = device->allocate(64, Memory::kHostReads);
  const auto on_device = device->allocate(64, Memory::kDevice);
  REQUIRE((from && to && on_device));
  std::memset(device->mapped(*from).data(), 7, 64);
  engine::gpu::Operation in, out;
  in.operands = {{{*from, 0, 64}, {*on_device, 0, 64}}};
  out.operands = {{{*on_device, 0, 64}, {*to, 0, 64}}};
  invalidated = 0;
  REQUIRE(device->run({&in, 1}));
  CHECK(invalidated == 0);
  for (int run = 1; run <= 2; ++run) {  // recorded, then repeated
    REQUIRE(device->run({&out, 1}));
    CHECK(invalidated == run);
  }
  const auto copies = device->begin_copies({&out, 1});
  REQUIRE(copies);
  CHECK(invalidated == 2);
  REQUIRE(device->finish(*copies));
  CHECK(invalidated == 3);
  CHECK(device->mapped(*to)[63] == std::byte{7});
}

}  // namespace efimd::test
