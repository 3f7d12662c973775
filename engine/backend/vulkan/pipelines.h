#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <tuple>
#include <vector>

#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/vulkan/vulkan_context.h"

namespace efimd::engine::vulkan {

/// The pipelines of the operations, made on first use, and the file that keeps what the driver
/// compiled:
///
///   offset  size  field
///   0       8     "efimd-vk"
///   8       4     version of this header
///   12      4     driver version    16  4  vendor    20  4  device
///   24      16    pipelineCacheUUID of the driver
///   40      16    digest of what follows
///   56            the driver's data
///
/// If anything differs, the file is ignored and written anew.
///
/// Thread: one.  Limits: kCacheBytesMax of the file; a larger one is not read.
class Pipelines {
 public:
  Pipelines(const VulkanContext& context, std::filesystem::path file)
      : context_(context), file_(std::move(file)) {}
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  Result<void> open();
  Result<VkPipeline> of(const gpu::Operation& operation);
  VkPipelineLayout layout() const { return layout_; }
  VkDescriptorSetLayout operands() const { return operands_; }
  /// Writes the file if pipelines were made since. A failure only costs a slower start and is not
  /// reported.
  void keep();
  /// Whether open() used the file.
  bool read_from_file() const { return read_from_file_; }

 private:
  Result<VkPipeline> make(const gpu::Operation& operation);
  static constexpr std::size_t kHeaderBytes = 56;
  std::array<std::byte, kHeaderBytes> header(std::span<const std::byte> data) const;
  std::vector<std::byte> read_file();

  const VulkanContext& context_;
  const std::filesystem::path file_;
  bool read_from_file_ = false;
  bool changed_ = false;
  VkDescriptorSetLayout operands_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::map<std::tuple<gpu::Kernel, std::uint32_t, std::uint32_t>, VkPipeline> pipelines_;
};

}  // namespace efimd::engine::vulkan
