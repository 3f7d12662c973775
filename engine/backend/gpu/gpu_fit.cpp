#include "engine/backend/gpu/gpu_fit.h"

#include <algorithm>
#include <string>

#include "engine/backend/gpu/gpu_kv.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/backend/gpu/step_buffers.h"
#include "engine/backend/size.h"

namespace efimd::engine::gpu {

namespace {

/// Fewer pages than this leave no room for a prompt: 256 tokens.
constexpr int kWindowPagesMin = 8;

/// Rounded up.
std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + (std::size_t{1} << 20U) - 1) >> 20U) + " MiB";
}

/// Memory that a model takes beside its KV.
std::size_t fixed_bytes(const ModelShape& shape, const ModelWeights& weights,
                        const GpuOptions& options) {
  return GpuWeights::bytes(weights, options.with_output) +
         StepBuffers::bytes(shape, options.step_tokens_max);
}

}  // namespace

Result<int> pages_that_fit(const GpuDevice& device, const ModelShape& shape,
                           const ModelWeights& weights, const GpuOptions& options) {
  const DeviceLimits limits = device.limits();
  const std::size_t page_bytes = page_bytes_of(shape, options.kv_type);
  const std::size_t fixed = fixed_bytes(shape, weights, options);
  const std::size_t rest = limits.memory_bytes > fixed ? limits.memory_bytes - fixed : 0;
  const std::size_t pages =
      std::min({size(std::max(0, options.page_count)), rest / page_bytes,
                limits.range_bytes_max / layer_page_bytes(shape, options.kv_type)});
  const std::size_t wanted = std::min(size(std::max(1, options.page_count)), size(kWindowPagesMin));
  if (pages >= wanted) return static_cast<int>(pages);
  return fail(Fault::kNoMemory,
              device.name() + " has " + mebibytes(limits.memory_bytes) + "; the model takes " +
                  mebibytes(fixed) + " and a window of KV " + mebibytes(wanted * page_bytes),
              "choose a smaller model or quantization");
}

int layers_that_fit(const DeviceLimits& limits, const ModelShape& shape,
                    const ModelWeights& weights, const GpuOptions& options) {
  GpuOptions of_part = options;
  of_part.with_output = WithOutput::kNo;
  const std::size_t page = layer_page_bytes(shape, options.kv_type);
  const std::size_t whole = std::max<std::size_t>(weights.layers.size(), 1) - 1;
  // Fewer pages only where not one layer fits beside more.
  for (int pages = options.page_count;; pages = std::max(pages / 2, kWindowPagesMin)) {
    ModelWeights part = weights;
    part.layers.resize(whole);
    while (!part.layers.empty() &&
           fixed_bytes(shape, part, of_part) + part.layers.size() * size(pages) * page >
               limits.memory_bytes)
      part.layers.pop_back();
    if (!part.layers.empty() || pages <= kWindowPagesMin)
      return static_cast<int>(part.layers.size());
  }
}

}  // namespace efimd::engine::gpu
