#pragma once

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// Attention over f16 is that of f64 over the same halves, within rounding, for heads and groups of
/// every kind and with a window. Slots without a token may hold anything. A row's bits are the same
/// alone and beside others of its sequence and of another, and whether its splits are joined by
/// whoever goes through them or after.
void check_attention_in_halves(engine::gpu::GpuDevice& device);

}  // namespace efimd::test
