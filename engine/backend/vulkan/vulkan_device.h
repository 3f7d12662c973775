#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/gpu/variants.h"

namespace efimd::engine::vulkan {

struct VulkanApi;

struct VulkanOptions {
  enum class Software {
    kNever,      ///< real GPUs only
    kIfNothing,  ///< a driver that runs on the CPU (lavapipe), if there is no GPU
  };
  Software software = Software::kNever;
  /// The folder of pipelines between starts; empty: none is kept. A file from another driver,
  /// device or build, or a damaged one, is ignored.
  std::filesystem::path pipeline_cache = {};

  /// The longest time that one submission may keep a GPU busy. Drivers reset a GPU that is busy for
  /// seconds, and other work, such as drawing the desktop, waits meanwhile.
  std::chrono::nanoseconds submission_max = std::chrono::milliseconds(100);
  gpu::Variants variants = gpu::kConfirmedVariants;

  // For tests.
  std::filesystem::path render_nodes = "/dev/dri";  ///< if no GPU is found, whether one is refused
  std::optional<int> level_max = {};                ///< the most of shaders::Level to use
  std::size_t range_bytes_max = 0;                  ///< 0: the device's own
  std::size_t memory_bytes = 0;                     ///< at most; 0: what the device has
  std::function<void(const std::string&)> on_validation = {};  ///< turns the validation layer on
  std::function<void(VulkanApi&)> adjust = {};                 ///< sees the functions before use
  std::function<void(VulkanApi&)> adjust_instance = {};  ///< the same before a device is chosen
};

/// The Vulkan device that suits best: discrete before integrated before virtual, then the one with
/// most memory. kNotFound without loader, driver or device; kIo if the user may open none;
/// kUnsupported for drivers older than Vulkan 1.1.
///
/// A list of operations becomes one command buffer. It is recorded once and submitted again as long
/// as it is among the kProgramsMax used last. After a list took longer than submission_max for each
/// of its submissions, all lists are cut into several. A barrier over all memory separates
/// operations.
Result<std::unique_ptr<gpu::GpuDevice>> open_vulkan_device(const VulkanOptions& options);

}  // namespace efimd::engine::vulkan
