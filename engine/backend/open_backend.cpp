#include "engine/backend/open_backend.h"

#include <algorithm>
#include <utility>

#include "engine/backend/device_check.h"
#include "engine/backend/gpu/gpu_backend.h"
#include "engine/backend/gpu/gpu_fit.h"
#include "engine/backend/split_backend.h"
#if defined(EFIMD_CUDA)
#include "engine/backend/cuda/cuda_device.h"
#endif
#if defined(EFIMD_VULKAN)
#include "engine/backend/vulkan/vulkan_device.h"
#endif

namespace efimd::engine {

namespace {

using Device = Result<std::unique_ptr<gpu::GpuDevice>>;

[[maybe_unused]] tl::unexpected<Error> not_built_in(std::string_view kind) {
  return fail(Fault::kUnsupported, "not in this build of efimd",
              "build it where " + std::string(kind) + "'s compiler is installed");
}

enum class Asked { kByName, kByNobody };

Device open_device(std::string_view kind, Asked asked, const DeviceWish& wish) {
#if defined(EFIMD_CUDA)
  if (kind == "cuda") {
    cuda::CudaOptions options;
    options.memory_bytes = wish.memory_bytes;
    options.variants = wish.variants;
    return cuda::open_cuda_device(options);
  }
#endif
#if defined(EFIMD_VULKAN)
  if (kind == "vulkan") {
    vulkan::VulkanOptions options;
    options.memory_bytes = wish.memory_bytes;
    options.variants = wish.variants;
    if (asked == Asked::kByName) options.software = vulkan::VulkanOptions::Software::kIfNothing;
    if (!wish.cache_dir.empty()) options.pipeline_cache = wish.cache_dir / "vulkan-pipelines";
    return vulkan::open_vulkan_device(options);
  }
#endif
  static_cast<void>(asked);
  static_cast<void>(wish);
  return not_built_in(kind);
}

CpuOptions cpu_options(const DeviceWish& wish) {
  CpuOptions cpu;
  cpu.threads = wish.threads;
  cpu.page_count = wish.page_count;
  cpu.kv_type = wish.kv_type;
  cpu.weights = wish.weights;
  cpu.weights_at_once = wish.weights_at_once;
  cpu.weights_told = wish.weights_told;
  return cpu;
}

/// A keystroke waits for the step that is in progress.
constexpr double kStepMsMax = 15;
/// With more tokens a step reads the weights no less often for a prompt than matters.
constexpr int kGpuStepTokensMax = 256;

gpu::GpuOptions gpu_options(const DeviceWish& wish) {
  gpu::GpuOptions options;
  options.page_count = wish.page_count;
  options.kv_type = wish.kv_type;
  return options;
}

Asked asked_for(std::string_view kind, const DeviceWish& wish) {
  return wish.kind == kind ? Asked::kByName : Asked::kByNobody;
}

/// The GPU with as many layers as fit, and the CPU with the others. A driver's free memory may be
/// gone when it is wanted; then less must do.
Result<std::unique_ptr<Backend>> open_split(std::string_view kind,
                                            const std::shared_ptr<const Model>& model,
                                            DeviceWish wish) {
  for (;;) {
    Device device = open_device(kind, asked_for(kind, wish), wish);
    if (!device) return tl::unexpected(std::move(device).error());
    const gpu::DeviceLimits limits = (*device)->limits();
    const gpu::GpuOptions options = gpu_options(wish);
    const int layers = gpu::layers_that_fit(limits, model->shape(), model->weights(), options);
    auto split = make_split_backend(*std::move(device), model->shape(), model->weights(), options,
                                    cpu_options(wish), model);
    if (split || split.error().fault != Fault::kNoMemory || layers == 0) return split;
    wish.memory_bytes = limits.memory_bytes / 4 * 3;
  }
}

Result<std::unique_ptr<Backend>> open_kind(std::string_view kind,
                                           const std::shared_ptr<const Model>& model,
                                           const DeviceWish& wish) {
  if (kind == "cpu") return make_cpu_backend(model, cpu_options(wish));
  auto backend = open_backend_of(kind, model->shape(), model->weights(), wish);
  if (!backend || wish.checked.contains(std::string(kind))) return backend;
  if (auto good = check_device(**backend, model->shape(), model->weights(), cpu_options(wish),
                               gpu::WithOutput::kYes);
      !good)
    return tl::unexpected(std::move(good).error());
  return backend;
}

std::vector<std::string_view> order_of(const DeviceWish& wish) {
  std::vector<std::string_view> order(std::begin(kDeviceKinds), std::end(kDeviceKinds));
  std::stable_partition(order.begin(), order.end(),
                        [&](std::string_view kind) { return kind == wish.kind; });
  // Who asks for the CPU wants no GPU to be touched.
  if (wish.kind == "cpu") order.resize(1);
  return order;
}

}  // namespace

Result<OpenedBackend> open_backend(const std::shared_ptr<const Model>& model,
                                   const DeviceWish& wish) {
  std::string passed_over;
  const auto pass_over = [&](std::string_view kind, const std::string& why) {
    passed_over += (passed_over.empty() ? "" : "; ") + std::string(kind) + ": " + why;
  };
  for (const std::string_view kind : order_of(wish)) {
    const auto failed = std::ranges::find(
        wish.failed, kind, [](const auto& each) { return std::string_view(each.first); });
    if (failed != wish.failed.end() && kind != "cpu") {
      pass_over(kind, failed->second);
      continue;
    }
    auto backend = open_kind(kind, model, wish);
    if (!backend && kind != "cpu" && backend.error().fault == Fault::kNoMemory) {
      if (auto split = open_split(kind, model, wish)) {
        pass_over(kind, backend.error().what);
        backend = std::move(split);
      }
    }
    if (backend) {
      // A device that holds a copy would go on with what the file was not.
      if (!model->file().intact())
        return fail(Fault::kIo, model->path().string() + " was changed while it was loaded",
                    "put the whole file there, then run 'efimd stop'");
      const std::string good = kind == wish.kind ? "configured" : "the best kind found";
      return OpenedBackend{*std::move(backend), passed_over.empty() ? good : passed_over};
    }
    if (kind == "cpu") return tl::unexpected(std::move(backend).error());
    pass_over(kind, backend.error().what);
  }
  return fail(Fault::kUnsupported, "no device for the model");
}

Result<std::unique_ptr<Backend>> open_backend_of(std::string_view kind, const ModelShape& shape,
                                                 const ModelWeights& weights,
                                                 const DeviceWish& wish) {
  if (kind == "cpu") return make_cpu_backend(shape, weights, cpu_options(wish));
  Device device = open_device(kind, asked_for(kind, wish), wish);
  if (!device) return tl::unexpected(std::move(device).error());
  if (wish.objection) {
    const FoundGpu gpu{std::string(kind), (*device)->name()};
    if (std::string why = wish.objection(gpu); !why.empty())
      return fail(Fault::kUnsupported, std::move(why), "set device.kind to use it anyway");
  }
  gpu::GpuOptions options = gpu_options(wish);
  options.step_tokens_max = kGpuStepTokensMax;
  options.step_ms_max = kStepMsMax;
  return gpu::make_gpu_backend(*std::move(device), shape, weights, options);
}

std::vector<FoundDevice> find_devices(std::string_view asked) {
  std::vector<FoundDevice> found;
  for (const std::string_view kind : kDeviceKinds) {
    if (kind == "cpu") continue;
    const Device device = open_device(kind, kind == asked ? Asked::kByName : Asked::kByNobody, {});
    if (device)
      found.push_back({std::string(kind), true, false, (*device)->name(), ""});
    else
      found.push_back({std::string(kind), false, device.error().fault == Fault::kIo,
                       device.error().what, device.error().remedy});
  }
  return found;
}

}  // namespace efimd::engine
