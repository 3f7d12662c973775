#include "engine/backend/gpu/gpu_fused.h"

#include <algorithm>

#include "engine/backend/gpu/packed_weights.h"
#include "engine/backend/size.h"

namespace efimd::engine::gpu {

namespace {

using kernels::u32;

/// So many rows' quants fit the shared memory of every card.
constexpr int kRowsMax = static_cast<int>(kernels::kTokensOfTile);
/// Products on halves have a kernel for one token.
constexpr int kHalvesRowsMax = 1;

/// `few_pairs`: of rows, that a block has if there are several tokens.
bool can_fuse(const DeviceLimits& limits, const GpuNorm& norm, const GpuMatrix& matrix, int rows,
              u32 few_pairs) {
  const auto has_kernel = [&](const GpuMatrix::Part& part) {
    return part.halves ? rows <= kHalvesRowsMax : is_quantized(part.type) && rows <= kRowsMax;
  };
  const std::size_t pairs = size(matrix.rows) / 2;
  return pairs <= limits.fused_pairs_max &&
         (rows == 1 || pairs <= few_pairs * limits.fused_blocks_max) && norm.bias.bytes == 0 &&
         matrix.cols <= static_cast<int>(kernels::kNormedColsMax) &&
         std::ranges::all_of(matrix.parts, has_kernel);
}

}  // namespace

bool with_norm_heads(const DeviceLimits& limits, const ModelShape& shape, const GpuLayer& layer,
                     kernels::Kv form, int rows) {
  const auto whole_heads = [&](const GpuMatrix::Part& part) {
    return part.first % shape.head_width == 0 && part.rows % shape.head_width == 0;
  };
  return can_fuse(limits, layer.attention_norm, layer.qkv, rows, kernels::kFewRows / 2) &&
         form == kernels::Kv::kF16 && layer.query_norm.bytes == 0 && layer.key_norm.bytes == 0 &&
         std::ranges::all_of(layer.qkv.parts, whole_heads);
}

bool with_norm_gates(const DeviceLimits& limits, const ModelShape& shape, const GpuLayer& layer,
                     int rows) {
  if (!can_fuse(limits, layer.feed_forward_norm, layer.gate_up, rows, kernels::kNormedGates) ||
      !layer.gated || layer.gate_up.parts.size() != 1)
    return false;
  const bool halves = layer.gate_up.parts.front().halves;
  const u32 gates = halves ? kernels::kHalvesRows : kernels::kNormedGates;  // of a block
  return number(shape.feed_forward) % gates == 0 && !(halves && layer.down.inputs().quants != 0);
}

kernels::HeadsSizes heads_sizes(const ModelShape& shape, const GpuLayer& layer,
                                const GpuMatrix::Part& part, int rows, u32 rotated_pairs) {
  return {part.layout,
          number(layer.qkv.cols),
          number(part.rows),
          number(part.first),
          number(rows),
          layer.qkv_bias.bytes > 0 ? 1U : 0U,
          shape.norm_epsilon,
          number(shape.heads),
          number(shape.kv_heads),
          number(shape.head_width),
          rotated_pairs,
          shape.rope_pairs == RopePairs::kAdjacent ? 1U : 0U,
          shape.score_scale()};
}

kernels::GatesSizes gates_sizes(const ModelShape& shape, const GpuLayer& layer, int rows) {
  return {layer.gate_up.parts.front().layout,
          number(layer.gate_up.cols),
          number(shape.feed_forward),
          number(rows),
          layer.gate_up_bias.bytes > 0 ? 1U : 0U,
          shape.norm_epsilon,
          shape.activation == Activation::kGelu ? 1U : 0U,
          shape.residual_scale,
          layer.down.inputs()};
}

void set_fused(Operation& operation, const GpuMatrix::Part& part, int rows) {
  // Two rows make a pair of a head, or a gate and its value.
  operation.type = static_cast<u32>(part.type);
  operation.many = rows > 1;
  operation.groups = {number(part.rows / 2), 1, 1};
}

}  // namespace efimd::engine::gpu
