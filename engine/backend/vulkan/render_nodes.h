#pragma once

#include <filesystem>
#include <optional>

namespace efimd::engine::vulkan {

/// A node renderD* of the folder (/dev/dri) that this user may not read and write. Drivers say nothing of the GPU behind it:
/// it is as if there were none.
std::optional<std::filesystem::path> refused_render_node(const std::filesystem::path& folder);

}  // namespace efimd::engine::vulkan
