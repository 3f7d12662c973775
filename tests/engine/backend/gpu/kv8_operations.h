#pragma once

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// K and V of heads of any width and elements of any size go to 8 bits with the very scales of the CPU's form, and to
/// its quants but for ties. Bytes that a page does not need are zero.
void check_store_in_8_bits(engine::gpu::GpuDevice& device);
/// Attention over 8 bits is that of f64 over the bytes and the bias, within rounding, even with a
/// bias of hundreds. It is the scalar CPU's within that one's rounding to f16.
void check_attention_in_8_bits(engine::gpu::GpuDevice& device);

}  // namespace efimd::test
