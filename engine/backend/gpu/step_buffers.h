#pragma once

#include <cstddef>
#include <vector>

#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"

namespace efimd::engine::gpu {

/// Split-K partials of a head that attention may write in a step.
std::size_t attention_partials(int tokens_max);

/// The results that a step's operations hand on, of up to T tokens; with experts a token has `used`
/// rows in the feed-forward.
struct StepBuffers {
  Range x;                       ///< [T][D], the residual stream
  Range normed;                  ///< [T][D]
  Range qkv;                     ///< [T][H + 2 Hk][E]
  Range partials;                ///< [T][H][splits][2 + E], split-K partials of attention
  Range attended;                ///< [T][H E]
  Range gate_up;                 ///< [used T][2 F], or [T][F]
  Range hidden;                  ///< [used T][F]
  Range quants, scales, halves;  ///< inputs of the next product
  Range router_logits, chosen, expert_weights, expert_parts;

  Result<void> allocate(GpuDevice& device, const ModelShape& shape, int tokens_max);
  /// Bytes that allocate() takes.
  static std::size_t bytes(const ModelShape& shape, int tokens_max);
};

/// `count` floats of memory.
Result<Range> take(GpuDevice& device, std::size_t count, Memory where);

}  // namespace efimd::engine::gpu
