#pragma once

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// Attention over f16 is that of f64 over the same halves, within rounding, for heads and groups of every kind and with a
/// window; what no token was stored in may hold anything. A row's bits are the same alone and beside others of its
/// sequence and of another, and whether its splits are joined by whoever goes through them or behind.
void check_attention_in_halves(engine::gpu::GpuDevice& device);

}  // namespace efimd::test
