#pragma once

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// Products of every weight type, of few and of many tokens, of one and of several parts, against the scalar
/// specification. Sums in another order: `tolerance` of the sum of the products' sizes.
void check_products(engine::gpu::GpuDevice& device);
/// Inputs at the edges (all zero, one huge value, ties) are quantized as the specification does, but for the last bit of
/// a scale.
void check_quantize(engine::gpu::GpuDevice& device);
/// What goes to f16 is rounded to nearest even and saturates: all exponents, ties, subnormals, infinity.
void check_halves(engine::gpu::GpuDevice& device);

}  // namespace efimd::test
