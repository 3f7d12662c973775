#pragma once

#include <filesystem>
#include <optional>

namespace efimd::engine::vulkan {

/// A node renderD* of the folder (/dev/dri) that this user may not read and write. Drivers do not
/// report the GPU of such a node at all.
std::optional<std::filesystem::path> refused_render_node(const std::filesystem::path& folder);

}  // namespace efimd::engine::vulkan
