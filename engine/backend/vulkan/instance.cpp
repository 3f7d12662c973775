#include "engine/backend/vulkan/instance.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace efimd::engine::vulkan {

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL take_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                            VkDebugUtilsMessageTypeFlagsEXT,
                                            const VkDebugUtilsMessengerCallbackDataEXT* data,
                                            void* context) {
  static_cast<VulkanContext*>(context)->on_validation(data->pMessage);
  return VK_FALSE;
}

bool has_layer(const VulkanApi& api, const char* name) {
  std::uint32_t count = 0;
  api.EnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  api.EnumerateInstanceLayerProperties(&count, layers.data());
  return std::ranges::any_of(layers, [&](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, name) == 0;
  });
}

}  // namespace

Result<void> make_instance(VulkanContext& context) {
  VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "efimd";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;

  // Validation, where a test asks for it: with synchronization, and every message to the test.
  const VkValidationFeatureEnableEXT synchronization =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features = {VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &synchronization;
  VkDebugUtilsMessengerCreateInfoEXT messages = {
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messages.pNext = &features;
  messages.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                             VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messages.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messages.pfnUserCallback = take_message;
  messages.pUserData = &context;
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  if (context.on_validation) {
    if (!has_layer(context.api, kValidationLayer))
      return fail(Fault::kNotFound, "the Vulkan validation layer is not installed");
    info.pNext = &messages;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
  }
  const std::set<std::string> before = loaded_libraries();
  const VkResult made = context.api.CreateInstance(&info, nullptr, &context.instance);
  keep_loaded_since(before);
  if (made != VK_SUCCESS) {
    context.instance = VK_NULL_HANDLE;
    return fail(Fault::kNotFound, "no Vulkan driver: " + result_name(made),
                "install your graphics card's driver");
  }
  if (!context.api.load(context.instance))
    return fail(Fault::kUnsupported, "the Vulkan loader is older than 1.1", "update it");
  if (!context.on_validation) return {};
  const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      context.api.GetInstanceProcAddr(context.instance, "vkCreateDebugUtilsMessengerEXT"));
  messages.pNext = nullptr;
  if (create == nullptr ||
      create(context.instance, &messages, nullptr, &context.messenger) != VK_SUCCESS)
    return fail(Fault::kUnsupported, "the Vulkan validation layer gives no messages");
  return {};
}

void destroy_instance(VulkanContext& context) {
  const VulkanApi& api = context.api;
  if (context.instance == VK_NULL_HANDLE || api.DestroyInstance == nullptr) return;
  if (context.messenger != VK_NULL_HANDLE) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        api.GetInstanceProcAddr(context.instance, "vkDestroyDebugUtilsMessengerEXT"));
    if (destroy != nullptr) destroy(context.instance, context.messenger, nullptr);
  }
  api.DestroyInstance(context.instance, nullptr);
}

}  // namespace efimd::engine::vulkan
