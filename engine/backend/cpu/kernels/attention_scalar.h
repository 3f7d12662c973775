#pragma once

#include "engine/backend/cpu/kernels/kernels.h"

namespace efimd::engine::cpu {

/// The specification of attention; CpuKernels says what it computes.
void attention_scalar(const AttentionTask& task);
/// The same over 8-bit KV. The page is expanded again for each query, because this code is for
/// reading.
void attention_kv8_scalar(const AttentionTask& task, const Kv8Source& source);

}  // namespace efimd::engine::cpu
