#include "engine/backend/vulkan/subgroups.h"

#include <algorithm>

#include "kernels/sizes.h"

namespace efimd::engine::vulkan {

namespace {

using gpu::Kernel;

constexpr std::uint32_t kIntel = 0x8086;

bool adds_over_threads(Kernel kernel) {
  return kernel == Kernel::kNormRows || kernel == Kernel::kMatmul || kernel == Kernel::kStoreRows ||
         kernel == Kernel::kAttention;
}

}  // namespace

std::uint32_t Subgroups::size_for(Kernel kernel) const {
  if (!chosen || !adds_over_threads(kernel)) return 0;
  std::uint32_t wanted = std::min(usual, kernels::kLanes);
  // Intel's threads have few registers. 8 tokens' products take the fewest cycles at 16, but
  // attention spills there (Mesa 25.0's estimates for Tiger Lake).
  if (vendor == kIntel) wanted = kernel == Kernel::kAttention ? 8 : 16;
  return std::clamp(wanted, least, most);
}

}  // namespace efimd::engine::vulkan
