#pragma once

#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"
#include "kernels/sizes.h"

namespace efimd::engine::gpu {

/// Pages per split. Fixed per model, because the order of sums must not depend on the step.
int split_pages_of(const ModelShape& shape);

/// How many splits a step of so many rows over so many pages has; 1 if each row goes through all
/// pages.
///   partials of a head for which there is room
std::uint32_t splits_of(std::size_t rows, const ModelShape& shape, int pages, std::size_t partials);

/// Whether the device attends to such heads by kAttentionTiles.
bool with_tiles(const DeviceLimits& limits, kernels::Kv form, std::uint32_t head_width);

/// Sets kernel, type and workgroups of an operation with the operands of kAttention, for these
/// sizes and this device.
void set_attention(Operation& operation, kernels::Kv form, const kernels::AttentionSizes& sizes,
                   const DeviceLimits& limits);

}  // namespace efimd::engine::gpu
