#include "engine/backend/vulkan/render_nodes.h"

#include <unistd.h>

#include <system_error>

namespace efimd::engine::vulkan {

namespace fs = std::filesystem;

std::optional<fs::path> refused_render_node(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator node(folder, error), end; !error && node != end;
       node.increment(error))
    if (node->path().filename().string().starts_with("renderD") &&
        ::access(node->path().c_str(), R_OK | W_OK) != 0)
      return node->path();
  return std::nullopt;
}

}  // namespace efimd::engine::vulkan
