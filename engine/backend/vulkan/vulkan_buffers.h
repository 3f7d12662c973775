#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/vulkan/vulkan_context.h"

namespace efimd::engine::vulkan {

/// The buffers of a Vulkan device, each with memory of its own.
///
/// Thread: one.  Owns: buffers and memory until it goes; nothing may be under way then.
/// Fails with kNoMemory or kDeviceLost.
class VulkanBuffers {
 public:
  /// The ranges that the host must invalidate after a submission before it reads: whole
  /// allocations, for any size of the device's atoms.
  using Stale = std::vector<VkMappedMemoryRange>;

  explicit VulkanBuffers(const VulkanContext& context) : context_(context) {}
  ~VulkanBuffers();
  VulkanBuffers(const VulkanBuffers&) = delete;
  VulkanBuffers& operator=(const VulkanBuffers&) = delete;

  Result<gpu::BufferId> allocate(std::size_t bytes, gpu::Memory where);
  std::span<std::byte> mapped(gpu::BufferId id) const;
  VkBuffer of(gpu::BufferId id) const { return at(id).buffer; }
  /// For a list of these operations.
  Stale stale_of(std::span<const gpu::Operation> operations) const;

 private:
  struct Buffer {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    std::size_t bytes = 0;
    void* mapping = nullptr;
    bool invalidated = false;  ///< before the host reads what the device wrote
  };
  const Buffer& at(gpu::BufferId id) const { return buffers_[static_cast<std::size_t>(id) - 1]; }
  Result<void> bind_memory(Buffer& buffer, gpu::Memory where) const;

  const VulkanContext& context_;
  std::vector<Buffer> buffers_;
};

}  // namespace efimd::engine::vulkan
