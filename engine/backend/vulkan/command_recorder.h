#pragma once

#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/vulkan/pipelines.h"
#include "engine/backend/vulkan/vulkan_buffers.h"
#include "engine/backend/vulkan/vulkan_context.h"

namespace efimd::engine::vulkan {

/// Records operations, and the barriers between them, into command buffers.
///
/// Thread: one. Owns nothing: its buffers and pipelines outlive it.
class CommandRecorder {
 public:
  CommandRecorder(const VulkanContext& context, Pipelines& pipelines, const VulkanBuffers& buffers)
      : context_(context), pipelines_(pipelines), buffers_(buffers) {}

  /// Its operands' set comes out of `sets`. Fails if the pipeline or the set cannot be made.
  Result<void> operation(VkCommandBuffer commands, VkDescriptorPool sets,
                         const gpu::Operation& operation);
  void copy(VkCommandBuffer commands, const gpu::Operation& operation) const;
  /// Operations after it see everything that was written before it.
  void barrier_between(VkCommandBuffer commands) const;
  /// The host sees everything that was written before it.
  void barrier_to_host(VkCommandBuffer commands) const;

 private:
  Result<VkDescriptorSet> operand_set(VkDescriptorPool sets, const gpu::Operation& operation) const;
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags to_stage, VkAccessFlags to) const;

  const VulkanContext& context_;
  Pipelines& pipelines_;
  const VulkanBuffers& buffers_;
};

}  // namespace efimd::engine::vulkan
