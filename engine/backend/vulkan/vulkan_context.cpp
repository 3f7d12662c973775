// From the loader to a device with a compute queue.
#include "engine/backend/vulkan/vulkan_context.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/vulkan/instance.h"
#include "engine/backend/vulkan/render_nodes.h"

namespace efimd::engine::vulkan {

namespace {

constexpr const char* kIntegerDotExtension = "VK_KHR_shader_integer_dot_product";
constexpr const char* kSubgroupSizeExtension = "VK_EXT_subgroup_size_control";
/// Operands of an operation, as storage buffers.
constexpr std::uint32_t kBuffersMin = 8;

/// Of a device's type: the more, the sooner it is chosen.
int rank_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 0;
    default:
      return 1;
  }
}

std::size_t own_memory(const VkPhysicalDeviceMemoryProperties& memory) {
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
      most = std::max<std::size_t>(most, memory.memoryHeaps[i].size);
  return most;
}

tl::unexpected<Error> no_device(bool on_cpu, const std::filesystem::path& render_nodes) {
  if (const auto refused = refused_render_node(render_nodes))
    return fail(Fault::kIo, "no GPU that this user may open, see " + refused->string(),
                "run 'sudo usermod -aG render $USER', then log in again");
  return fail(Fault::kNotFound,
              on_cpu ? "no GPU, only Vulkan on the CPU" : "no device that speaks Vulkan",
              on_cpu ? "set device.kind to vulkan to use it anyway"
                     : "install your graphics card's driver");
}

Result<void> choose_device(VulkanContext& context, const VulkanOptions& options) {
  std::uint32_t count = 0;
  context.api.EnumeratePhysicalDevices(context.instance, &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  context.api.EnumeratePhysicalDevices(context.instance, &count, devices.data());
  devices.resize(count);
  bool on_cpu = false;
  bool too_old = false;
  std::pair<int, std::size_t> best = {-1, 0};
  for (const VkPhysicalDevice device : devices) {
    VkPhysicalDeviceProperties properties;
    context.api.GetPhysicalDeviceProperties(device, &properties);
    const int rank = rank_of(properties.deviceType);
    if (rank == 0) on_cpu = true;
    if (rank == 0 && options.software == VulkanOptions::Software::kNever) continue;
    if (properties.apiVersion < VK_API_VERSION_1_1 ||
        properties.limits.maxPerStageDescriptorStorageBuffers < kBuffersMin) {
      too_old = true;
      continue;
    }
    VkPhysicalDeviceMemoryProperties memory;
    context.api.GetPhysicalDeviceMemoryProperties(device, &memory);
    const std::pair<int, std::size_t> score = {rank, own_memory(memory)};
    if (score <= best) continue;
    best = score;
    context.physical = device;
    context.properties = properties;
    context.memory = memory;
  }
  if (context.physical != VK_NULL_HANDLE) return {};
  if (too_old)
    return fail(Fault::kUnsupported, "the Vulkan driver is older than Vulkan 1.1",
                "update the graphics driver");
  return no_device(on_cpu, options.render_nodes);
}

bool has_extension(const VulkanContext& context, const char* name) {
  std::uint32_t count = 0;
  context.api.EnumerateDeviceExtensionProperties(context.physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  context.api.EnumerateDeviceExtensionProperties(context.physical, nullptr, &count,
                                                 extensions.data());
  return std::ranges::any_of(extensions, [&](const VkExtensionProperties& each) {
    return std::strcmp(each.extensionName, name) == 0;
  });
}

/// Memory of other programs is not available.
std::size_t free_memory(const VulkanContext& context) {
  if (!has_extension(context, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME))
    return own_memory(context.memory);
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  memory.pNext = &budget;
  context.api.GetPhysicalDeviceMemoryProperties2(context.physical, &memory);
  VkPhysicalDeviceMemoryProperties free = memory.memoryProperties;
  for (std::uint32_t i = 0; i < free.memoryHeapCount; ++i) {
    const VkDeviceSize used = std::min(budget.heapUsage[i], budget.heapBudget[i]);
    free.memoryHeaps[i].size = std::min(free.memoryHeaps[i].size, budget.heapBudget[i] - used);
  }
  return own_memory(free);
}

std::size_t largest_allocation(const VulkanContext& context) {
  VkPhysicalDeviceMaintenance3Properties limits = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  properties.pNext = &limits;
  context.api.GetPhysicalDeviceProperties2(context.physical, &properties);
  return limits.maxMemoryAllocationSize;
}

bool may_choose_subgroups(const VulkanContext& context) {
  return context.properties.apiVersion >= VK_API_VERSION_1_3 ||
         has_extension(context, kSubgroupSizeExtension);
}

Subgroups subgroups_of(const VulkanContext& context) {
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroups = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  const bool many_sizes = may_choose_subgroups(context);
  if (many_sizes) subgroups.pNext = &sizes;
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  properties.pNext = &subgroups;
  context.api.GetPhysicalDeviceProperties2(context.physical, &properties);
  constexpr VkSubgroupFeatureFlags kNeeded =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  Subgroups found;
  found.adding = (subgroups.supportedOperations & kNeeded) == kNeeded &&
                 (subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  found.usual = found.least = found.most = subgroups.subgroupSize;
  found.vendor = context.properties.vendorID;
  if (!many_sizes) return found;
  found.least = sizes.minSubgroupSize;
  found.most = sizes.maxSubgroupSize;
  VkPhysicalDeviceSubgroupSizeControlFeatures control = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  features.pNext = &control;
  context.api.GetPhysicalDeviceFeatures2(context.physical, &features);
  found.chosen = control.subgroupSizeControl == VK_TRUE &&
                 (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  return found;
}

bool has_integer_dot(const VulkanContext& context) {
  if (!has_extension(context, kIntegerDotExtension)) return false;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  features.pNext = &dot;
  context.api.GetPhysicalDeviceFeatures2(context.physical, &features);
  return dot.shaderIntegerDotProduct == VK_TRUE;
}

shaders::Level level_of(const VulkanContext& context) {
  using shaders::Level;
  if (!context.subgroups.in_one_order()) return Level::kPlain;
  return has_integer_dot(context) ? Level::kIntegerDot : Level::kSubgroups;
}

/// A family for compute alone, if there is one: nothing on the screen waits in it.
Result<std::uint32_t> compute_family(const VulkanContext& context) {
  std::uint32_t count = 0;
  context.api.GetPhysicalDeviceQueueFamilyProperties(context.physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  context.api.GetPhysicalDeviceQueueFamilyProperties(context.physical, &count, families.data());
  std::optional<std::uint32_t> any;
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if ((families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0) return i;
    if (!any) any = i;
  }
  if (any) return *any;
  return fail(Fault::kUnsupported, context.name() + " has no compute queue");
}

Result<void> make_device(VulkanContext& context) {
  const auto family = compute_family(context);
  if (!family) return tl::unexpected(family.error());
  context.queue_family = *family;
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = context.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  dot.shaderIntegerDotProduct = VK_TRUE;
  VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  VkPhysicalDeviceSubgroupSizeControlFeatures control = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  control.subgroupSizeControl = VK_TRUE;
  void* features = nullptr;
  std::vector<const char*> extensions;
  if (context.level == shaders::Level::kIntegerDot) {
    features = &dot;
    extensions.push_back(kIntegerDotExtension);
  }
  if (context.subgroups.chosen) {
    control.pNext = std::exchange(features, &control);
    if (has_extension(context, kSubgroupSizeExtension))
      extensions.push_back(kSubgroupSizeExtension);
  }
  info.pNext = features;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult made = context.api.CreateDevice(context.physical, &info, nullptr, &context.device);
  if (made != VK_SUCCESS) {
    context.device = VK_NULL_HANDLE;
    return vulkan_failed(context.name() + " cannot be opened", made);
  }
  if (!context.api.load(context.device))
    return fail(Fault::kUnsupported, context.name() + " lacks functions of Vulkan 1.1",
                "update the graphics driver");
  context.api.GetDeviceQueue(context.device, context.queue_family, 0, &context.queue);
  return {};
}

}  // namespace

Result<std::unique_ptr<VulkanContext>> VulkanContext::open(const VulkanOptions& options) {
  auto context = std::make_unique<VulkanContext>();
  auto api = VulkanApi::open();
  if (!api) return tl::unexpected(std::move(api).error());
  context->api = *api;
  context->on_validation = options.on_validation;
  Result<void> done = make_instance(*context);
  if (done && options.adjust_instance) options.adjust_instance(context->api);
  if (done) done = choose_device(*context, options);
  if (!done) return tl::unexpected(std::move(done).error());
  const int most = options.level_max.value_or(shaders::kLevels - 1);
  context->memory_bytes = free_memory(*context);
  context->allocation_bytes_max = largest_allocation(*context);
  context->subgroups = subgroups_of(*context);
  context->level =
      static_cast<shaders::Level>(std::min(static_cast<int>(level_of(*context)), most));
  done = make_device(*context);
  if (!done) return tl::unexpected(std::move(done).error());
  if (options.adjust) options.adjust(context->api);
  return context;
}

VulkanContext::~VulkanContext() {
  if (device != VK_NULL_HANDLE && api.DestroyDevice != nullptr) api.DestroyDevice(device, nullptr);
  destroy_instance(*this);
}

std::string VulkanContext::name() const {
  return std::string(properties.deviceName) + ", Vulkan " +
         std::to_string(VK_API_VERSION_MAJOR(properties.apiVersion)) + "." +
         std::to_string(VK_API_VERSION_MINOR(properties.apiVersion)) + ", driver " +
         std::to_string(properties.driverVersion);
}

}  // namespace efimd::engine::vulkan
