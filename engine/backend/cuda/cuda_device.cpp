// Buffers, graphs and copies of an NVIDIA device.
#include "engine/backend/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "engine/backend/cuda/cuda_api.h"
#include "engine/backend/cuda/cuda_context.h"
#include "kernels/launch.h"

namespace efimd::engine::cuda {

namespace {

using gpu::BufferId;
using gpu::CopyTicket;
using gpu::Kernel;
using gpu::Memory;
using gpu::Operation;
using gpu::Range;

/// Graphs that are kept; an older one is captured again.
constexpr std::size_t kGraphsMax = 16;
/// Events of copies that were begun, used in turn: finish() of older ones waits for a later event
/// of the same stream.
constexpr std::size_t kEvents = 8;
/// With fewer tokens kernels/matmul_few.cuh has no fewer instructions than kernels/matmul.cuh.
constexpr int kQuantizedTileMin = 4;

kernels::Launch launch_of(const Operation& operation) {
  return kernels::launch_of(operation.kernel, operation.type, operation.many, operation.groups);
}

class CudaDevice final : public gpu::GpuDevice {
 public:
  CudaDevice(std::unique_ptr<CudaContext> context, const CudaOptions& options)
      : context_(std::move(context)), variants_(options.variants) {}
  ~CudaDevice() override;

  Result<void> open();

  std::string kind() const override { return "cuda"; }
  std::string name() const override { return context_->name(); }
  gpu::DeviceLimits limits() const override {
    gpu::DeviceLimits limits;
    limits.range_bytes_max = std::size_t{1} << 32U;
    limits.offset_alignment = 256;
    limits.memory_bytes = context_->memory_bytes();
    if (variants_.quantized_products) limits.quantized_tile_min = kQuantizedTileMin;
    limits.f16_products = variants_.half_products;
    limits.bf16_products = variants_.half_products && context_->code_capability() >= 80;
    limits.f16_attention = variants_.tensor_attention;
    return limits;
  }
  Result<BufferId> allocate(std::size_t bytes, Memory where) override;
  std::span<std::byte> mapped(BufferId buffer) override;
  Result<void> run(std::span<const Operation> operations) override;
  Result<CopyTicket> begin_copies(std::span<const Operation> copies) override;
  Result<void> finish(CopyTicket copies) override;

 private:
  struct Buffer {
    CUdeviceptr device = 0;
    void* host = nullptr;
    std::size_t bytes = 0;
  };
  struct Graph {
    std::vector<Operation> operations;
    CUgraphExec executable = nullptr;
  };

  CUdeviceptr at(const Range& range) const {
    return buffers_[static_cast<std::size_t>(range.buffer) - 1].device + range.offset;
  }
  Result<void> issue(const Operation& operation, CUstream stream);
  Result<void> issue_all(std::span<const Operation> operations, CUstream stream);
  Result<CUgraphExec> graph(std::span<const Operation> operations);
  Result<CUgraphExec> capture(std::span<const Operation> operations);
  Result<void> run_on_device(std::span<const Operation> operations);
  Result<void> issue_copies(std::span<const Operation> copies);
  /// Keeps the error of a device that is lost.
  Result<void> noted(Result<void> done) {
    if (!done && done.error().fault == Fault::kDeviceLost) lost_ = done.error();
    return done;
  }
  Result<void> checked(const char* what, CUresult result) const {
    return context_->checked(what, result);
  }

  const std::unique_ptr<CudaContext> context_;
  const CudaApi& api_ = context_->api();
  const gpu::Variants variants_;
  CUstream steps_ = nullptr;
  CUstream copies_ = nullptr;
  std::array<CUevent, kEvents> events_ = {};
  CopyTicket copies_begun_ = 0;
  CopyTicket copies_awaited_ = 0;  ///< by the stream of steps
  std::vector<Buffer> buffers_;
  std::list<Graph> graphs_;  ///< used last first
  std::optional<Error> lost_;
};

CudaDevice::~CudaDevice() {
  // After a sticky error all of this fails, and the context takes everything with it.
  static_cast<void>(context_->make_current());
  if (copies_ != nullptr) api_.cuStreamSynchronize_(copies_);
  for (const Graph& graph : graphs_) api_.cuGraphExecDestroy_(graph.executable);
  for (const Buffer& buffer : buffers_) {
    if (buffer.host != nullptr)
      api_.cuMemFreeHost_(buffer.host);
    else
      api_.cuMemFree_(buffer.device);
  }
  for (CUevent event : events_)
    if (event != nullptr) api_.cuEventDestroy_(event);
  if (steps_ != nullptr) api_.cuStreamDestroy_(steps_);
  if (copies_ != nullptr) api_.cuStreamDestroy_(copies_);
}

Result<void> CudaDevice::open() {
  Result<void> done = checked("a stream", api_.cuStreamCreate_(&steps_, CU_STREAM_NON_BLOCKING));
  if (done) done = checked("a stream", api_.cuStreamCreate_(&copies_, CU_STREAM_NON_BLOCKING));
  for (CUevent& event : events_)
    if (done) done = checked("an event", api_.cuEventCreate_(&event, CU_EVENT_DISABLE_TIMING));
  return done;
}

Result<BufferId> CudaDevice::allocate(std::size_t bytes, Memory where) {
  if (lost_) return tl::unexpected(*lost_);
  Buffer buffer;
  buffer.bytes = bytes;
  Result<void> done = context_->make_current();
  const std::string amount = std::to_string(bytes >> 20U) + " MiB";
  if (done && where == Memory::kDevice) {
    done = checked(amount.c_str(), api_.cuMemAlloc_(&buffer.device, bytes));
  } else if (done) {
    done = checked(amount.c_str(),
                   api_.cuMemHostAlloc_(&buffer.host, bytes,
                                        CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    if (done)
      done =
          checked("host memory", api_.cuMemHostGetDevicePointer_(&buffer.device, buffer.host, 0));
  }
  if (!done) return tl::unexpected(std::move(done).error());
  buffers_.push_back(buffer);
  return static_cast<BufferId>(buffers_.size());
}

std::span<std::byte> CudaDevice::mapped(BufferId id) {
  const Buffer& buffer = buffers_[static_cast<std::size_t>(id) - 1];
  return {static_cast<std::byte*>(buffer.host), buffer.host == nullptr ? 0 : buffer.bytes};
}

Result<void> CudaDevice::run(std::span<const Operation> operations) {
  if (lost_) return tl::unexpected(*lost_);
  if (operations.empty()) return {};
  return noted(run_on_device(operations));
}

Result<CopyTicket> CudaDevice::begin_copies(std::span<const Operation> copies) {
  if (lost_) return tl::unexpected(*lost_);
  if (auto issued = noted(issue_copies(copies)); !issued)
    return tl::unexpected(std::move(issued).error());
  return copies_begun_;
}

Result<void> CudaDevice::issue_copies(std::span<const Operation> copies) {
  if (auto current = context_->make_current(); !current) return current;
  if (auto issued = issue_all(copies, copies_); !issued) return issued;
  ++copies_begun_;
  return checked("copies", api_.cuEventRecord_(events_[copies_begun_ % kEvents], copies_));
}

Result<void> CudaDevice::finish(CopyTicket copies) {
  if (lost_) return tl::unexpected(*lost_);
  if (auto current = context_->make_current(); !current) return noted(current);
  return noted(checked("copies", api_.cuEventSynchronize_(events_[copies % kEvents])));
}

Result<void> CudaDevice::run_on_device(std::span<const Operation> operations) {
  if (auto current = context_->make_current(); !current) return current;
  if (std::ranges::all_of(operations,
                          [](const Operation& each) { return each.kernel == Kernel::kCopy; })) {
    if (auto issued = issue_all(operations, copies_); !issued) return issued;
    return checked("copies", api_.cuStreamSynchronize_(copies_));
  }
  if (copies_awaited_ != copies_begun_) {
    if (auto waits =
            checked("copies", api_.cuStreamWaitEvent_(steps_, events_[copies_begun_ % kEvents], 0));
        !waits)
      return waits;
    copies_awaited_ = copies_begun_;
  }
  const auto executable = graph(operations);
  if (!executable) return tl::unexpected(executable.error());
  if (auto launched = checked("a step", api_.cuGraphLaunch_(*executable, steps_)); !launched)
    return launched;
  return checked("a step", api_.cuStreamSynchronize_(steps_));
}

Result<CUgraphExec> CudaDevice::graph(std::span<const Operation> operations) {
  const auto known = std::ranges::find_if(
      graphs_, [&](const Graph& each) { return std::ranges::equal(each.operations, operations); });
  if (known != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, known);
    return graphs_.front().executable;
  }
  const auto captured = capture(operations);
  if (!captured) return captured;
  if (graphs_.size() == kGraphsMax) {
    api_.cuGraphExecDestroy_(graphs_.back().executable);
    graphs_.pop_back();
  }
  graphs_.push_front({{operations.begin(), operations.end()}, *captured});
  return *captured;
}

Result<CUgraphExec> CudaDevice::capture(std::span<const Operation> operations) {
  // Functions are looked up before: a lookup may load code, which a capture does not allow.
  for (const Operation& operation : operations)
    if (operation.kernel != Kernel::kCopy)
      if (const auto found = context_->function(launch_of(operation).name); !found)
        return tl::unexpected(found.error());
  if (auto begun = checked("capturing a step",
                           api_.cuStreamBeginCapture_(steps_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
      !begun)
    return tl::unexpected(std::move(begun).error());
  const Result<void> issued = issue_all(operations, steps_);
  CUgraph graph = nullptr;
  Result<void> done = checked("capturing a step", api_.cuStreamEndCapture_(steps_, &graph));
  if (!issued) done = issued;
  CUgraphExec executable = nullptr;
  if (done) done = checked("a step's graph", api_.cuGraphInstantiate_(&executable, graph, 0));
  if (graph != nullptr) api_.cuGraphDestroy_(graph);
  if (!done) return tl::unexpected(std::move(done).error());
  return executable;
}

Result<void> CudaDevice::issue_all(std::span<const Operation> operations, CUstream stream) {
  for (const Operation& operation : operations)
    if (auto issued = issue(operation, stream); !issued) return issued;
  return {};
}

Result<void> CudaDevice::issue(const Operation& operation, CUstream stream) {
  if (operation.kernel == Kernel::kCopy) {
    const Range& to = operation.operands[1];
    return checked("a copy",
                   api_.cuMemcpyAsync_(at(to), at(operation.operands[0]), to.bytes, stream));
  }
  const kernels::Launch launch = launch_of(operation);
  const auto entry = context_->function(launch.name);
  if (!entry) return tl::unexpected(entry.error());
  // A kernel takes the addresses of its operands and then its sizes.
  std::array<CUdeviceptr, gpu::kOperandsMax> addresses = {};
  std::array<void*, gpu::kOperandsMax + 1> parameters = {};
  std::size_t count = 0;
  for (; count < gpu::kOperandsMax && operation.operands[count].buffer != BufferId::kNone;
       ++count) {
    addresses[count] = at(operation.operands[count]);
    parameters[count] = &addresses[count];
  }
  alignas(16) auto sizes = operation.sizes;
  parameters[count] = sizes.data();
  return checked("a kernel", api_.cuLaunchKernel_(*entry, launch.grid[0], launch.grid[1],
                                                  launch.grid[2], launch.block[0], launch.block[1],
                                                  1, 0, stream, parameters.data(), nullptr));
}

}  // namespace

Result<std::unique_ptr<gpu::GpuDevice>> open_cuda_device(const CudaOptions& options) {
  auto context = CudaContext::open(options);
  if (!context) return tl::unexpected(std::move(context).error());
  auto device = std::make_unique<CudaDevice>(*std::move(context), options);
  if (auto opened = device->open(); !opened) return tl::unexpected(std::move(opened).error());
  return std::unique_ptr<gpu::GpuDevice>(std::move(device));
}

}  // namespace efimd::engine::cuda
