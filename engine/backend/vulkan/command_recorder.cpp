#include "engine/backend/vulkan/command_recorder.h"

#include <array>

namespace efimd::engine::vulkan {

void CommandRecorder::barrier_between(VkCommandBuffer commands) const {
  barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
              VK_ACCESS_TRANSFER_WRITE_BIT);
}

void CommandRecorder::barrier_to_host(VkCommandBuffer commands) const {
  barrier(commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

void CommandRecorder::barrier(VkCommandBuffer commands, VkPipelineStageFlags to_stage,
                              VkAccessFlags to) const {
  VkMemoryBarrier info = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  info.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  info.dstAccessMask = to;
  context_.api.CmdPipelineBarrier(
      commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, to_stage, 0,
      1, &info, 0, nullptr, 0, nullptr);
}

Result<void> CommandRecorder::operation(VkCommandBuffer commands, VkDescriptorPool sets,
                                        const gpu::Operation& operation) {
  if (operation.kernel == gpu::Kernel::kCopy) {
    copy(commands, operation);
    return {};
  }
  const auto pipeline = pipelines_.of(operation);
  if (!pipeline) return tl::unexpected(pipeline.error());
  const auto set = operand_set(sets, operation);
  if (!set) return tl::unexpected(set.error());
  context_.api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, *pipeline);
  context_.api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(),
                                     0, 1, &*set, 0, nullptr);
  context_.api.CmdPushConstants(commands, pipelines_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                gpu::kSizesBytesMax, operation.sizes.data());
  context_.api.CmdDispatch(commands, operation.groups[0], operation.groups[1], operation.groups[2]);
  return {};
}

void CommandRecorder::copy(VkCommandBuffer commands, const gpu::Operation& operation) const {
  const gpu::Range& from = operation.operands[0];
  const gpu::Range& to = operation.operands[1];
  const VkBufferCopy region = {from.offset, to.offset, to.bytes};
  context_.api.CmdCopyBuffer(commands, buffers_.of(from.buffer), buffers_.of(to.buffer), 1,
                             &region);
}

Result<VkDescriptorSet> CommandRecorder::operand_set(VkDescriptorPool sets,
                                                     const gpu::Operation& operation) const {
  VkDescriptorSetLayout layout = pipelines_.operands();
  VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorPool = sets;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  const VkResult made = context_.api.AllocateDescriptorSets(context_.device, &info, &set);
  if (made != VK_SUCCESS) return vulkan_failed("operands of a step", made);
  std::array<VkDescriptorBufferInfo, gpu::kOperandsMax> ranges;
  std::array<VkWriteDescriptorSet, gpu::kOperandsMax> writes;
  std::uint32_t count = 0;
  for (const gpu::Range& range : operation.operands) {
    if (range.buffer == gpu::BufferId::kNone) break;
    ranges[count] = {buffers_.of(range.buffer), range.offset, range.bytes};
    writes[count] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    writes[count].dstSet = set;
    writes[count].dstBinding = count;
    writes[count].descriptorCount = 1;
    writes[count].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[count].pBufferInfo = &ranges[count];
    ++count;
  }
  context_.api.UpdateDescriptorSets(context_.device, count, writes.data(), 0, nullptr);
  return set;
}

}  // namespace efimd::engine::vulkan
