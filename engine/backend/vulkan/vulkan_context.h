#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/backend/vulkan/subgroups.h"
#include "engine/backend/vulkan/vulkan_api.h"
#include "engine/backend/vulkan/vulkan_device.h"
#include "shaders/spirv.h"

namespace efimd::engine::vulkan {

/// Instance, physical device, logical device and its compute queue; closed in the right order.
///
/// Thread: one.
struct VulkanContext {
  VulkanApi api;
  VkInstance instance = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  std::function<void(const std::string&)> on_validation;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceMemoryProperties memory = {};
  /// The free memory of the device's own largest heap, or that heap's size if the driver does not
  /// say.
  std::size_t memory_bytes = 0;
  std::size_t allocation_bytes_max = 0;
  Subgroups subgroups;
  shaders::Level level = shaders::Level::kPlain;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  VkQueue queue = VK_NULL_HANDLE;

  static Result<std::unique_ptr<VulkanContext>> open(const VulkanOptions& options);
  VulkanContext() = default;
  VulkanContext(const VulkanContext&) = delete;
  VulkanContext& operator=(const VulkanContext&) = delete;
  ~VulkanContext();

  /// "NVIDIA GeForce RTX 3060, Vulkan 1.3, driver 123"
  std::string name() const;
};

}  // namespace efimd::engine::vulkan
