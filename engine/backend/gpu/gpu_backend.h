#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/backend/kv_type.h"
#include "engine/model/model.h"

namespace efimd::engine::gpu {

struct GpuOptions {
  int page_count = 0;  ///< lowered to what the device's memory and operands hold
  int step_tokens_max = 64;
  KvType kv_type = KvType::kF16;
  WithOutput with_output = WithOutput::kYes;  ///< kNo: residual() is asked for, never logits()
  /// Within which a step is to be over: step_tokens_max is lowered to what was seen to be, but not below 64. 0: as it is.
  double step_ms_max = 0;
};

/// A Backend over a device: the order of its operations, once for CUDA and Vulkan. A step's operations are collected and
/// run together: in logits() or residual(), or behind the last layer where neither is wanted. So a failure of the device shows there,
/// and a step that is given up between layers has cost nothing.
///
/// KV lies token by token, [Hk][2][P][E] for each page and layer, in f16 or in 8 bits: the quants and scales of the CPU's
/// form (cpu/kv8_memory.h), of keys without their bias as there (cpu/key_bias.h). Where the CPU rounds what it expands to
/// f16, a GPU goes on in f32; where attention over f16 is on tensor cores, queries and weights are rounded to f16 as well.
/// A row's results depend on its sequence alone, as backend.h demands; between devices, drivers and the CPU they agree
/// within rounding only, which is why page_format() names the device.
///
/// Fails with kNoMemory, saying how much is missing, where the model or a window of KV do not fit (gpu_fit.h).
Result<std::unique_ptr<Backend>> make_gpu_backend(std::unique_ptr<GpuDevice> device,
                                                  const ModelShape& shape,
                                                  const ModelWeights& weights,
                                                  const GpuOptions& options);

}  // namespace efimd::engine::gpu
