#include "engine/backend/gpu/gpu_attention.h"

#include <algorithm>

namespace efimd::engine::gpu {

namespace {

using kernels::u32;

/// With fewer pages the joining of the splits takes as long as these.
constexpr int kSplitPagesMin = 2;
/// A row has no more splits than this, so that their partials fit step_buffers.h's.
constexpr int kSplitsMax = 256;
/// So many rows times heads fill a large card: each then goes through its splits alone, for partials would be written and
/// read for nothing.
constexpr std::size_t kWholeRowsMin = 8192;

u32 over(u32 count, u32 by) { return (count + by - 1) / by; }

}  // namespace

int split_pages_of(const ModelShape& shape) {
  const int pages = (shape.context_tokens + kPageTokens - 1) / kPageTokens;
  return std::max(kSplitPagesMin, (pages + kSplitsMax - 1) / kSplitsMax);
}

u32 splits_of(std::size_t rows, const ModelShape& shape, int pages, std::size_t partials) {
  // In powers of two, so that a sequence that grows repeats its list of operations.
  u32 splits = 1;
  while (splits * static_cast<u32>(split_pages_of(shape)) < static_cast<u32>(pages)) splits *= 2;
  const bool whole = rows * static_cast<std::size_t>(shape.heads) >= kWholeRowsMin;
  return whole || rows * splits > partials ? 1 : splits;
}

bool with_tiles(const DeviceLimits& limits, kernels::Kv form, u32 head_width) {
  const u32 pieces = head_width / 32;
  return limits.f16_attention && form == kernels::Kv::kF16 && head_width % 32 == 0 &&
         ((pieces >= 1 && pieces <= 4) || pieces == 8);
}

void set_attention(Operation& operation, kernels::Kv form, const kernels::AttentionSizes& sizes,
                   const DeviceLimits& limits) {
  const u32 group = sizes.heads / sizes.kv_heads, rows = sizes.tokens * group;
  operation.set_sizes(sizes);
  if (with_tiles(limits, form, sizes.head_width)) {
    operation.kernel = Kernel::kAttentionTiles;
    operation.type = sizes.head_width / 32;
    operation.groups = {over(rows, kernels::kHeadsOfTile), sizes.kv_heads, sizes.splits};
    operation.operands[5] = operation.operands[6] = {};  // f16 keys hold their bias
    return;
  }
  operation.kernel = Kernel::kAttention;
  operation.type = kernels::attention_type(form, sizes.head_width);
  operation.many = limits.shared_attention && rows > 1;
  const u32 tile = operation.many ? kernels::attention_tile(operation.type) : 1;
  operation.groups = {over(rows, tile), sizes.kv_heads, sizes.splits};
}

}  // namespace efimd::engine::gpu
