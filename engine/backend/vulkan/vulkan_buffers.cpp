#include "engine/backend/vulkan/vulkan_buffers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/backend/vulkan/memory_types.h"

namespace efimd::engine::vulkan {

using gpu::BufferId;
using gpu::Memory;

VulkanBuffers::~VulkanBuffers() {
  for (const Buffer& buffer : buffers_) {
    context_.api.DestroyBuffer(context_.device, buffer.buffer, nullptr);
    context_.api.FreeMemory(context_.device, buffer.memory, nullptr);
  }
}

Result<BufferId> VulkanBuffers::allocate(std::size_t bytes, Memory where) {
  Buffer buffer;
  buffer.bytes = (bytes + 3) / 4 * 4;
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = buffer.bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const VkResult made = context_.api.CreateBuffer(context_.device, &info, nullptr, &buffer.buffer);
  if (made != VK_SUCCESS) return vulkan_failed("memory of " + context_.name(), made);
  if (auto bound = bind_memory(buffer, where); !bound) {
    context_.api.DestroyBuffer(context_.device, buffer.buffer, nullptr);
    context_.api.FreeMemory(context_.device, buffer.memory, nullptr);
    return tl::unexpected(std::move(bound).error());
  }
  buffers_.push_back(buffer);
  return static_cast<BufferId>(buffers_.size());
}

Result<void> VulkanBuffers::bind_memory(Buffer& buffer, Memory where) const {
  VkMemoryRequirements needs;
  context_.api.GetBufferMemoryRequirements(context_.device, buffer.buffer, &needs);
  VkResult done = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkPhysicalDeviceMemoryProperties& memory = context_.memory;
  for (const std::uint32_t type : memory_types(memory, where, context_.properties.deviceType)) {
    if ((needs.memoryTypeBits >> type & 1U) == 0) continue;
    buffer.invalidated =
        where == Memory::kHostReads && needs_invalidation(memory.memoryTypes[type].propertyFlags);
    VkMemoryAllocateInfo info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    info.allocationSize = needs.size;
    info.memoryTypeIndex = type;
    done = context_.api.AllocateMemory(context_.device, &info, nullptr, &buffer.memory);
    if (done != VK_ERROR_OUT_OF_DEVICE_MEMORY) break;
  }
  if (done == VK_SUCCESS)
    done = context_.api.BindBufferMemory(context_.device, buffer.buffer, buffer.memory, 0);
  if (done == VK_SUCCESS && where != Memory::kDevice)
    done = context_.api.MapMemory(context_.device, buffer.memory, 0, VK_WHOLE_SIZE, 0,
                                  &buffer.mapping);
  if (done == VK_SUCCESS) return {};
  return vulkan_failed(std::to_string(needs.size >> 20U) + " MiB of " + context_.name(), done);
}

std::span<std::byte> VulkanBuffers::mapped(BufferId id) const {
  const Buffer& buffer = at(id);
  return {static_cast<std::byte*>(buffer.mapping), buffer.mapping == nullptr ? 0 : buffer.bytes};
}

VulkanBuffers::Stale VulkanBuffers::stale_of(std::span<const gpu::Operation> operations) const {
  Stale stale;
  for (const gpu::Operation& operation : operations)
    for (const gpu::Range& range : operation.operands) {
      if (range.buffer == BufferId::kNone || !at(range.buffer).invalidated) continue;
      const VkDeviceMemory memory = at(range.buffer).memory;
      if (std::ranges::find(stale, memory, &VkMappedMemoryRange::memory) == stale.end())
        stale.push_back({VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, nullptr, memory, 0, VK_WHOLE_SIZE});
    }
  return stale;
}

}  // namespace efimd::engine::vulkan
