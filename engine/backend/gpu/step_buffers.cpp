#include "engine/backend/gpu/step_buffers.h"

#include <algorithm>
#include <utility>

#include "engine/backend/size.h"
#include "kernels/sizes.h"

namespace efimd::engine::gpu {

namespace {

/// Sixteen rows over the longest context in as many splits as possible. More if a step has many
/// rows, until they need no splits.
constexpr std::size_t kPartialsMin = 4096, kPartialsOfRow = 16, kPartialsMax = 8192;

/// Of each buffer its floats.
std::vector<std::pair<Range StepBuffers::*, std::size_t>> floats_of(const ModelShape& shape,
                                                                    int tokens_max) {
  const std::size_t rows = size(std::max(1, tokens_max));
  const std::size_t slots = rows * size(std::max(shape.experts_used, 1));
  const std::size_t heads = size(shape.heads), head = size(shape.head_width);
  const std::size_t width = size(shape.width), hidden = slots * size(shape.feed_forward);
  const std::size_t widest = std::max(rows * std::max(width, heads * head), hidden);
  return {{&StepBuffers::x, rows * width},
          {&StepBuffers::normed, rows * width},
          {&StepBuffers::qkv, rows * (heads + 2 * size(shape.kv_heads)) * head},
          {&StepBuffers::partials,
           attention_partials(tokens_max) * heads * (kernels::kPartialHead + head)},
          {&StepBuffers::attended, rows * heads * head},
          {&StepBuffers::gate_up, 2 * hidden},
          {&StepBuffers::hidden, hidden},
          {&StepBuffers::quants, widest / 4 + 1},
          {&StepBuffers::scales, 2 * (widest / 32 + 1)},
          {&StepBuffers::halves, widest / 2 + 1},
          {&StepBuffers::router_logits, rows * size(shape.experts)},
          {&StepBuffers::chosen, slots},
          {&StepBuffers::expert_weights, slots},
          {&StepBuffers::expert_parts, shape.experts > 0 ? slots * width : 0}};
}

}  // namespace

std::size_t attention_partials(int tokens_max) {
  const std::size_t rows = size(std::max(1, tokens_max));
  return std::max(rows, std::clamp(rows * kPartialsOfRow, kPartialsMin, kPartialsMax));
}

Result<Range> take(GpuDevice& device, std::size_t count, Memory where) {
  const std::size_t bytes = std::max<std::size_t>(count, 4) * sizeof(float);
  auto buffer = device.allocate(bytes, where);
  if (!buffer) return tl::unexpected(std::move(buffer).error());
  return Range{*buffer, 0, bytes};
}

Result<void> StepBuffers::allocate(GpuDevice& device, const ModelShape& shape, int tokens_max) {
  for (const auto& [range, count] : floats_of(shape, tokens_max)) {
    auto taken = take(device, count, Memory::kDevice);
    if (!taken) return tl::unexpected(std::move(taken).error());
    this->*range = *taken;
  }
  return {};
}

std::size_t StepBuffers::bytes(const ModelShape& shape, int tokens_max) {
  std::size_t floats = 0;
  for (const auto& [range, count] : floats_of(shape, tokens_max)) floats += count;
  return floats * sizeof(float);
}

}  // namespace efimd::engine::gpu
