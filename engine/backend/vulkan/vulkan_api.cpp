#include "engine/backend/vulkan/vulkan_api.h"

#include <dlfcn.h>
#include <link.h>

namespace efimd::engine::vulkan {

Result<VulkanApi> VulkanApi::open(const char* library) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(Fault::kNotFound, std::string(library) + " is not installed",
                "install the Vulkan loader (Debian: libvulkan1) and a driver");
  VulkanApi api;
  api.GetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(handle, "vkGetInstanceProcAddr"));
  bool complete = api.GetInstanceProcAddr != nullptr;
#define EFIMD_VULKAN_LOAD(name)                                                              \
  if (complete)                                                                              \
    api.name = reinterpret_cast<PFN_vk##name>(api.GetInstanceProcAddr(nullptr, "vk" #name)); \
  complete = complete && api.name != nullptr;
  EFIMD_VULKAN_GLOBAL(EFIMD_VULKAN_LOAD)
#undef EFIMD_VULKAN_LOAD
  if (!complete)
    return fail(Fault::kUnsupported, std::string(library) + " is older than Vulkan 1.1",
                "update the Vulkan loader");
  return api;
}

bool VulkanApi::load(VkInstance instance) {
  bool complete = true;
#define EFIMD_VULKAN_LOAD(name)                                                       \
  (name) = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name)); \
  complete = complete && (name) != nullptr;
  EFIMD_VULKAN_INSTANCE(EFIMD_VULKAN_LOAD)
#undef EFIMD_VULKAN_LOAD
  return complete;
}

bool VulkanApi::load(VkDevice device) {
  bool complete = true;
#define EFIMD_VULKAN_LOAD(name)                                                   \
  (name) = reinterpret_cast<PFN_vk##name>(GetDeviceProcAddr(device, "vk" #name)); \
  complete = complete && (name) != nullptr;
  EFIMD_VULKAN_DEVICE(EFIMD_VULKAN_LOAD)
#undef EFIMD_VULKAN_LOAD
  return complete;
}

std::set<std::string> loaded_libraries() {
  std::set<std::string> names;
  ::dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* out) {
        if (library->dlpi_name != nullptr && *library->dlpi_name != '\0')
          static_cast<std::set<std::string>*>(out)->insert(library->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

void keep_loaded_since(const std::set<std::string>& before) {
  for (const std::string& name : loaded_libraries())
    if (!before.contains(name))
      static_cast<void>(::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE));
}

std::string result_name(VkResult result) {
  switch (result) {
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_ERROR_UNKNOWN:
      return "VK_ERROR_UNKNOWN";
    default:
      return "Vulkan error " + std::to_string(static_cast<int>(result));
  }
}

tl::unexpected<Error> vulkan_failed(const std::string& what, VkResult result) {
  const std::string message = what + ": " + result_name(result);
  switch (result) {
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
      return fail(Fault::kNoMemory, message, "close other programs, or choose a smaller model");
    case VK_ERROR_DEVICE_LOST:
    case VK_TIMEOUT:
      return fail(Fault::kDeviceLost, message, "update the graphics driver if it happens again");
    default:
      return fail(Fault::kUnsupported, message, "update the graphics driver");
  }
}

}  // namespace efimd::engine::vulkan
