#pragma once

#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/model/model.h"
#include "kernels/sizes.h"

namespace efimd::engine::gpu {

/// Whether a step of so many rows uses Kernel::kNormHeads. That is a layer's norm, queries, keys,
/// values and their storing as one operation for each part of the matrix. The results are the same,
/// bit for bit.
bool with_norm_heads(const DeviceLimits& limits, const ModelShape& shape, const GpuLayer& layer,
                     kernels::Kv form, int rows);
/// The same of the norm, gates and values, and the activation: Kernel::kNormGates.
bool with_norm_gates(const DeviceLimits& limits, const ModelShape& shape, const GpuLayer& layer,
                     int rows);

kernels::HeadsSizes heads_sizes(const ModelShape& shape, const GpuLayer& layer,
                                const GpuMatrix::Part& part, int rows, kernels::u32 rotated_pairs);
kernels::GatesSizes gates_sizes(const ModelShape& shape, const GpuLayer& layer, int rows);
/// Type and workgroups of either, for this part.
void set_fused(Operation& operation, const GpuMatrix::Part& part, int rows);

}  // namespace efimd::engine::gpu
