#pragma once

#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"
#include "kernels/sizes.h"

namespace efimd::engine::gpu {

/// From so many tokens of a sequence on they are attended to in tiles. An estimate that no card has confirmed yet.
inline constexpr int kTiledTokensMin = 4;

/// So many pages of a sequence as long as the model knows are one split, whatever the step: sums must not depend on it.
int split_pages_of(const ModelShape& shape);

/// How many splits a step of so many rows over so many pages has, or 1 where each row goes through them all.
///   records  of a head, that there is room for
std::uint32_t splits_of(std::size_t rows, const ModelShape& shape, int pages, std::size_t records);

/// Whether the device attends to such heads by kAttentionTiles.
bool with_tiles(const DeviceLimits& limits, kernels::Kv form, std::uint32_t head_width);

/// DeviceLimits::shared_attention_min for a step of so many rows over so many pages. Those of one page share always: it
/// costs them nothing, and the first steps and the comparison with the CPU (device_check.h) meet what only long prompts need.
std::uint32_t shared_attention_min(const DeviceLimits& limits, std::size_t rows, int pages);

/// Makes an operation that has the operands of kAttention that of these sizes on this device: its kernel, type and
/// workgroups. The step has rows of so many sequences.
void set_attention(Operation& operation, kernels::Kv form, const kernels::AttentionSizes& sizes,
                   const DeviceLimits& limits, int sequences);

}  // namespace efimd::engine::gpu
