#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/backend/kv_type.h"
#include "engine/model/model.h"

namespace efimd::engine::gpu {

/// Bytes of a page in one layer; kernels::Kv has the layouts.
std::size_t layer_page_bytes(const ModelShape& shape, KvType type);
/// The same of all layers.
inline std::size_t page_bytes_of(const ModelShape& shape, KvType type) {
  return static_cast<std::size_t>(shape.layers) * layer_page_bytes(shape, type);
}

/// The RoPE table of the keys' bias, if keys are kept without it (kernels/attention.cuh): pairs of
/// cosine and sine. First come [rope_width / 2][P] of the slots of a page, times RoPE's magnitude,
/// then [pages][rope_width / 2] of the pages of a sequence. The angle of a position is the sum of
/// two. A table of positions would be P times as long, and f32 is too coarse for large angles.
std::vector<float> bias_rope_table(const ModelShape& shape, std::span<const double> frequencies,
                                   int pages);

}  // namespace efimd::engine::gpu
