#pragma once

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// K and V of heads of any width and elements of any size go to 8 bits with the very scales of the CPU's form, and to
/// its quants but for ties; what a page does not need is zero.
void check_store_in_8_bits(engine::gpu::GpuDevice& device);
/// Attention over 8 bits is that of f64 over what the bytes and the bias say, within rounding, a bias of hundreds
/// included; and the scalar CPU's within what its f16 rounds off.
void check_attention_in_8_bits(engine::gpu::GpuDevice& device);

}  // namespace efimd::test
