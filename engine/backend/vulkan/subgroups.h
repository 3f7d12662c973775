#pragma once

#include <cstdint>

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::engine::vulkan {

/// The number of threads that a device adds up in one step. If a device has several, the driver
/// chooses one for each pipeline. Then pipelines of one token and of many would add in different
/// orders.
struct Subgroups {
  bool adding = false;  ///< sums and maxima over a subgroup
  std::uint32_t usual = 1;
  std::uint32_t least = 1, most = 1;
  bool chosen = false;  ///< a pipeline may ask for its size
  std::uint32_t vendor = 0;

  /// Whether a sum's order is the same in all pipelines of a kernel.
  bool in_one_order() const { return adding && (chosen || least == most); }
  /// The size that all pipelines of the kernel ask for. 0: none, because they add nothing over
  /// threads or cannot ask.
  std::uint32_t size_for(gpu::Kernel kernel) const;
};

}  // namespace efimd::engine::vulkan
