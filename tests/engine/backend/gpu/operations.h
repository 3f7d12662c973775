#pragma once

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// Products of every weight type, of few tokens, against the scalar specification. Sums in another order: 2e-6 of the sum of
/// the products' sizes.
void check_products(engine::gpu::GpuDevice& device);
/// The same of prompts: rows and tokens that are no multiple of a tile, one and two parts, with and without sums and
/// biases.
void check_prompt_products(engine::gpu::GpuDevice& device);
/// Products of every weight type are the same bit for bit, however the tokens are cut into steps: whatever kernels that
/// takes. Operands begin at any step's first token: for devices that need no more than 64 bytes of alignment.
/// Large tiles take seconds where kernels run on the CPU.
enum class LargeTiles { kNo, kYes };
void check_batch_invariance(engine::gpu::GpuDevice& device, LargeTiles large);
/// Inputs at the edges (all zero, one huge value, ties) are quantized as the specification does, but for the last bit of
/// a scale.
void check_quantize(engine::gpu::GpuDevice& device);
/// Norms and activations write the specification's values, as f32, as quants of those, or as both,
/// and nothing else. They do so for rows of whole groups, and as f32 for any width.
void check_forms(engine::gpu::GpuDevice& device);
/// What goes to f16 is rounded to nearest even and saturates: all exponents, ties, subnormals, infinity.
void check_halves(engine::gpu::GpuDevice& device);

}  // namespace efimd::test
