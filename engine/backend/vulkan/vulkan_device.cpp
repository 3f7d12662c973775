// Programs, copies and submissions of a Vulkan device.
#include "engine/backend/vulkan/vulkan_device.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <utility>
#include <vector>

#include "engine/backend/vulkan/command_recorder.h"
#include "engine/backend/vulkan/pipelines.h"
#include "engine/backend/vulkan/vulkan_buffers.h"
#include "engine/backend/vulkan/vulkan_context.h"

namespace efimd::engine::vulkan {

namespace {

using gpu::BufferId;
using gpu::CopyTicket;
using gpu::Memory;
using gpu::Operation;

/// Recorded lists of operations that are kept; an older one is recorded again.
constexpr std::size_t kProgramsMax = 16;
/// Lists of copies that are under way at once; one more waits for the oldest.
constexpr std::size_t kCopiesMax = 8;
/// A step that takes longer is taken for lost. Drivers reset a GPU that hangs within seconds.
constexpr std::uint64_t kStepNsMax = 120'000'000'000;
/// A list that takes longer than the limit for a submission is cut into several. They have at least
/// this many operations, about a layer's, so that a machine that slept meanwhile does not make each
/// step slow.
constexpr std::size_t kSubmittedMin = 10;
/// This program takes at most so much of a device's memory; the rest is the desktop's.
constexpr std::size_t memory_share(std::size_t bytes) { return bytes / 8 * 7; }

class VulkanDevice final : public gpu::GpuDevice {
 public:
  VulkanDevice(std::unique_ptr<VulkanContext> context, const VulkanOptions& options)
      : context_(std::move(context)),
        pipelines_(*context_, options.pipeline_cache),
        range_bytes_max_(options.range_bytes_max),
        memory_bytes_(options.memory_bytes),
        submission_max_(options.submission_max),
        variants_(options.variants) {}
  ~VulkanDevice() override;

  Result<void> open();

  std::string kind() const override { return "vulkan"; }
  std::string name() const override {
    constexpr const char* kLevelNames[] = {"plain", "subgroups", "integer dot products"};
    return context_->name() + ", " + kLevelNames[static_cast<int>(context_->level)];
  }
  gpu::DeviceLimits limits() const override;
  Result<BufferId> allocate(std::size_t bytes, Memory where) override;
  std::span<std::byte> mapped(BufferId buffer) override { return buffers_.mapped(buffer); }
  Result<void> run(std::span<const Operation> operations) override;
  Result<CopyTicket> begin_copies(std::span<const Operation> copies) override;
  Result<void> finish(CopyTicket copies) override;

 private:
  using Stale = VulkanBuffers::Stale;

  /// A list of operations, recorded.
  struct Program {
    std::vector<Operation> operations;
    VkDescriptorPool sets = VK_NULL_HANDLE;
    std::vector<VkCommandBuffer> commands;  ///< submitted one after another
    Stale stale;
  };

  /// Copies that were begun. They are recorded anew each time: hardly any come twice.
  struct Copies {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    Stale stale;
    bool under_way = false;
  };

  Result<Program*> program(std::span<const Operation> operations);
  VkResult allocate_commands(VkCommandBuffer& commands);
  Result<void> record(Program& program);
  void drop(Program& program);
  Result<void> run(const Program& program);
  /// Cuts lists smaller where this one took too long for its submissions.
  void learn(const Program& program, std::chrono::nanoseconds took);
  Result<void> submit(VkCommandBuffer commands, VkFence fence);
  Result<void> wait(VkFence fence, const Stale& stale);
  Result<void> issue(Copies& copies, std::span<const Operation> operations);
  Result<void> finish(Copies& copies);
  /// Keeps the error of a device that is lost. Some drivers give other errors than
  /// VK_ERROR_DEVICE_LOST then, as after sleep: a device that answers so is of no more use.
  Result<void> noted(Result<void> done) {
    if (done || done.error().fault == Fault::kNoMemory) return done;
    done.error().fault = Fault::kDeviceLost;
    lost_ = done.error();
    return done;
  }

  const std::unique_ptr<VulkanContext> context_;
  const VulkanApi& api_ = context_->api;
  Pipelines pipelines_;
  VulkanBuffers buffers_{*context_};
  CommandRecorder recorder_{*context_, pipelines_, buffers_};
  const std::size_t range_bytes_max_;
  const std::size_t memory_bytes_;
  const std::chrono::nanoseconds submission_max_;
  const gpu::Variants variants_;
  std::size_t submitted_max_ = SIZE_MAX;  ///< operations of a submission
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::list<Program> programs_;  ///< used last first
  std::array<Copies, kCopiesMax> copies_;
  CopyTicket copies_begun_ = 0;
  std::optional<Error> lost_;
};

VulkanDevice::~VulkanDevice() {
  VkDevice device = context_->device;
  api_.DeviceWaitIdle(device);
  pipelines_.keep();
  for (Program& program : programs_) drop(program);
  api_.DestroyFence(device, fence_, nullptr);
  for (const Copies& copies : copies_) api_.DestroyFence(device, copies.fence, nullptr);
  api_.DestroyCommandPool(device, pool_, nullptr);
}

Result<void> VulkanDevice::open() {
  if (auto opened = pipelines_.open(); !opened) return opened;
  VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = context_->queue_family;
  VkResult done = api_.CreateCommandPool(context_->device, &pool, nullptr, &pool_);
  const VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
  if (done == VK_SUCCESS) done = api_.CreateFence(context_->device, &fence, nullptr, &fence_);
  for (Copies& copies : copies_) {
    if (done == VK_SUCCESS)
      done = api_.CreateFence(context_->device, &fence, nullptr, &copies.fence);
    if (done == VK_SUCCESS) done = allocate_commands(copies.commands);
  }
  if (done != VK_SUCCESS) return vulkan_failed(context_->name(), done);
  return {};
}

gpu::DeviceLimits VulkanDevice::limits() const {
  const VkPhysicalDeviceLimits& of = context_->properties.limits;
  gpu::DeviceLimits limits;
  limits.range_bytes_max =
      range_bytes_max_ > 0
          ? range_bytes_max_
          : std::min<std::size_t>(of.maxStorageBufferRange, context_->allocation_bytes_max);
  // Copies and vectors of floats want four bytes at least.
  limits.offset_alignment = std::max<std::size_t>(16, of.minStorageBufferOffsetAlignment);
  const std::size_t own = memory_share(context_->memory_bytes);
  limits.memory_bytes = memory_bytes_ > 0 ? std::min(memory_bytes_, own) : own;
  limits.quantized_tile_min = 2;
  limits.shared_attention = variants_.shared_attention;
  return limits;
}

Result<BufferId> VulkanDevice::allocate(std::size_t bytes, Memory where) {
  if (lost_) return tl::unexpected(*lost_);
  auto buffer = buffers_.allocate(bytes, where);
  if (buffer) return buffer;
  return tl::unexpected(noted(tl::unexpected(std::move(buffer).error())).error());
}

Result<void> VulkanDevice::run(std::span<const Operation> operations) {
  if (lost_) return tl::unexpected(*lost_);
  if (operations.empty()) return {};
  auto found = program(operations);
  Result<void> done = found ? run(**found) : Result<void>(tl::unexpected(found.error()));
  if (done) pipelines_.keep();
  return noted(std::move(done));
}

Result<void> VulkanDevice::run(const Program& program) {
  const auto begin = std::chrono::steady_clock::now();
  Result<void> done = {};
  for (VkCommandBuffer commands : program.commands)
    if (done)
      done = submit(commands, commands == program.commands.back() ? fence_ : VK_NULL_HANDLE);
  // Some of it may be under way.
  if (!done) api_.DeviceWaitIdle(context_->device);
  if (done) done = wait(fence_, program.stale);
  if (done) learn(program, std::chrono::steady_clock::now() - begin);
  return done;
}

void VulkanDevice::learn(const Program& program, std::chrono::nanoseconds took) {
  const std::size_t count = program.operations.size();
  if (took / program.commands.size() <= submission_max_) return;
  const auto fit = static_cast<std::size_t>(static_cast<double>(count) *
                                            static_cast<double>(submission_max_.count()) /
                                            static_cast<double>(took.count()));
  const std::size_t most = std::max(fit, kSubmittedMin);
  if (most >= submitted_max_) return;
  submitted_max_ = most;
  for (Program& each : programs_) drop(each);
  programs_.clear();
}

Result<CopyTicket> VulkanDevice::begin_copies(std::span<const Operation> operations) {
  if (lost_) return tl::unexpected(*lost_);
  const CopyTicket ticket = copies_begun_ + 1;
  if (auto issued = noted(issue(copies_[ticket % kCopiesMax], operations)); !issued)
    return tl::unexpected(std::move(issued).error());
  return copies_begun_ = ticket;
}

Result<void> VulkanDevice::issue(Copies& copies, std::span<const Operation> operations) {
  if (auto done = finish(copies); !done) return done;
  const VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                          VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
  VkResult done = api_.BeginCommandBuffer(copies.commands, &begin);
  if (done != VK_SUCCESS) return vulkan_failed("recording copies", done);
  for (const Operation& operation : operations) recorder_.copy(copies.commands, operation);
  recorder_.barrier_between(copies.commands);
  recorder_.barrier_to_host(copies.commands);
  done = api_.EndCommandBuffer(copies.commands);
  if (done != VK_SUCCESS) return vulkan_failed("recording copies", done);
  copies.stale = buffers_.stale_of(operations);
  auto submitted = submit(copies.commands, copies.fence);
  copies.under_way = submitted.has_value();
  return submitted;
}

Result<void> VulkanDevice::finish(CopyTicket copies) {
  if (lost_) return tl::unexpected(*lost_);
  // One queue works in order. If the place has newer ones, these were waited for then.
  return copies + kCopiesMax <= copies_begun_ ? Result<void>()
                                              : noted(finish(copies_[copies % kCopiesMax]));
}

Result<void> VulkanDevice::finish(Copies& copies) {
  return std::exchange(copies.under_way, false) ? wait(copies.fence, copies.stale) : Result<void>();
}

Result<VulkanDevice::Program*> VulkanDevice::program(std::span<const Operation> operations) {
  const auto known = std::ranges::find_if(programs_, [&](const Program& each) {
    return std::ranges::equal(each.operations, operations);
  });
  if (known != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, known);
    return &programs_.front();
  }
  if (programs_.size() == kProgramsMax) {
    drop(programs_.back());
    programs_.pop_back();
  }
  Program& program = programs_.emplace_front();
  program.operations.assign(operations.begin(), operations.end());
  program.stale = buffers_.stale_of(operations);
  if (auto recorded = record(program); !recorded) {
    drop(program);
    programs_.pop_front();
    return tl::unexpected(std::move(recorded).error());
  }
  return &program;
}

VkResult VulkanDevice::allocate_commands(VkCommandBuffer& commands) {
  VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  return api_.AllocateCommandBuffers(context_->device, &info, &commands);
}

Result<void> VulkanDevice::record(Program& program) {
  const auto count = static_cast<std::uint32_t>(program.operations.size());
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     count * static_cast<std::uint32_t>(gpu::kOperandsMax)};
  VkDescriptorPoolCreateInfo sets = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  sets.maxSets = count;
  sets.poolSizeCount = 1;
  sets.pPoolSizes = &size;
  VkResult done = api_.CreateDescriptorPool(context_->device, &sets, nullptr, &program.sets);
  const VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0,
                                          nullptr};
  for (std::span<const Operation> rest = program.operations; done == VK_SUCCESS && !rest.empty();) {
    VkCommandBuffer& commands = program.commands.emplace_back(VK_NULL_HANDLE);
    done = allocate_commands(commands);
    if (done == VK_SUCCESS) done = api_.BeginCommandBuffer(commands, &begin);
    if (done != VK_SUCCESS) break;
    const auto part = rest.first(std::min(submitted_max_, rest.size()));
    rest = rest.subspan(part.size());
    for (const Operation& operation : part) {
      if (auto recorded = recorder_.operation(commands, program.sets, operation); !recorded)
        return recorded;
      recorder_.barrier_between(commands);
    }
    if (rest.empty()) recorder_.barrier_to_host(commands);
    done = api_.EndCommandBuffer(commands);
  }
  return done == VK_SUCCESS ? Result<void>() : vulkan_failed("recording a step", done);
}

void VulkanDevice::drop(Program& program) {
  api_.DestroyDescriptorPool(context_->device, program.sets, nullptr);
  for (VkCommandBuffer commands : program.commands)
    if (commands != VK_NULL_HANDLE) api_.FreeCommandBuffers(context_->device, pool_, 1, &commands);
}

Result<void> VulkanDevice::submit(VkCommandBuffer commands, VkFence fence) {
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  VkResult done =
      fence == VK_NULL_HANDLE ? VK_SUCCESS : api_.ResetFences(context_->device, 1, &fence);
  if (done == VK_SUCCESS) done = api_.QueueSubmit(context_->queue, 1, &info, fence);
  return done == VK_SUCCESS ? Result<void>() : vulkan_failed(context_->name() + ": a step", done);
}

Result<void> VulkanDevice::wait(VkFence fence, const Stale& stale) {
  VkResult done = api_.WaitForFences(context_->device, 1, &fence, VK_TRUE, kStepNsMax);
  if (done == VK_SUCCESS && !stale.empty())
    done = api_.InvalidateMappedMemoryRanges(
        context_->device, static_cast<std::uint32_t>(stale.size()), stale.data());
  return done == VK_SUCCESS ? Result<void>() : vulkan_failed(context_->name() + ": a step", done);
}

}  // namespace

Result<std::unique_ptr<gpu::GpuDevice>> open_vulkan_device(const VulkanOptions& options) {
  auto context = VulkanContext::open(options);
  if (!context) return tl::unexpected(std::move(context).error());
  auto device = std::make_unique<VulkanDevice>(*std::move(context), options);
  if (auto opened = device->open(); !opened) return tl::unexpected(std::move(opened).error());
  return std::unique_ptr<gpu::GpuDevice>(std::move(device));
}

}  // namespace efimd::engine::vulkan
