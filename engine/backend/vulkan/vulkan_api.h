#pragma once

// No prototypes: nothing links against the loader, which this machine may lack.
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <memory>
#include <set>
#include <string>

#include "base/error.h"

namespace efimd::engine::vulkan {

// Functions of the loader, of an instance and of a device, by their names without "vk".
// Each run would indent such a list further.
// clang-format off
#define EFIMD_VULKAN_GLOBAL(X) \
  X(CreateInstance) X(EnumerateInstanceLayerProperties) X(EnumerateInstanceVersion)
#define EFIMD_VULKAN_INSTANCE(X)                                                               \
  X(DestroyInstance)                                                                           \
  X(EnumeratePhysicalDevices)                                                                  \
  X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2) \
      X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceMemoryProperties2)               \
          X(GetPhysicalDeviceQueueFamilyProperties) X(EnumerateDeviceExtensionProperties)      \
              X(CreateDevice) X(GetDeviceProcAddr)
#define EFIMD_VULKAN_DEVICE(X)                                                                    \
  X(DestroyDevice)                                                                                \
  X(GetDeviceQueue)                                                                               \
  X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(AllocateMemory) X(FreeMemory) \
      X(BindBufferMemory) X(MapMemory) X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) \
          X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreateShaderModule)                  \
              X(DestroyShaderModule) X(CreatePipelineCache) X(DestroyPipelineCache)               \
                  X(GetPipelineCacheData) X(CreateComputePipelines) X(DestroyPipeline)            \
                      X(CreateDescriptorPool) X(DestroyDescriptorPool) X(AllocateDescriptorSets)  \
                          X(UpdateDescriptorSets) X(CreateCommandPool) X(DestroyCommandPool)      \
                              X(AllocateCommandBuffers) X(FreeCommandBuffers)                     \
                                  X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdBindPipeline)    \
                                      X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch) \
                                          X(CmdCopyBuffer) X(CmdPipelineBarrier) X(QueueSubmit)   \
                                              X(CreateFence) X(DestroyFence) X(WaitForFences)     \
                                                  X(ResetFences) X(DeviceWaitIdle)                \
                                                      X(InvalidateMappedMemoryRanges)
// clang-format on

/// Vulkan's functions, found at run time. Tests exchange single ones.
struct VulkanApi {
#define EFIMD_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  EFIMD_VULKAN_GLOBAL(EFIMD_VULKAN_MEMBER)
  EFIMD_VULKAN_INSTANCE(EFIMD_VULKAN_MEMBER)
  EFIMD_VULKAN_DEVICE(EFIMD_VULKAN_MEMBER)
#undef EFIMD_VULKAN_MEMBER
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;

  /// Opens the loader; kNotFound if there is none. It stays open for the life of the process, because
  /// drivers start threads and install handlers.
  static Result<VulkanApi> open(const char* library = "libvulkan.so.1");
  [[nodiscard]] bool load(VkInstance instance);
  [[nodiscard]] bool load(VkDevice device);
};

/// The names of the shared libraries that are loaded now.
std::set<std::string> loaded_libraries();
/// Keeps each library that is loaded now and not in `before` until the process ends. The loader
/// unloads drivers with their instance. Their globals and their threads' storage do not outlive
/// that (Mesa's leak and may crash at exit).
void keep_loaded_since(const std::set<std::string>& before);

std::string result_name(VkResult result);
/// A failed call as an Error: kDeviceLost, kNoMemory, or kUnsupported if it can only be the
/// driver's mistake.
tl::unexpected<Error> vulkan_failed(const std::string& what, VkResult result);

}  // namespace efimd::engine::vulkan
