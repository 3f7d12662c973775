#pragma once

#include "engine/backend/vulkan/vulkan_context.h"

namespace efimd::engine::vulkan {

/// Makes the context's instance and loads its functions. With on_validation it also loads the
/// validation layer, whose messages go there. Drivers that it loads stay loaded for the life of the
/// process. kNotFound without a driver; kUnsupported if the loader is older than 1.1.
Result<void> make_instance(VulkanContext& context);
/// Destroys what make_instance() made, as far as it came.
void destroy_instance(VulkanContext& context);

}  // namespace efimd::engine::vulkan
