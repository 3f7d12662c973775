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
  /// The longest time of a step: step_tokens_max is lowered until steps fit (measured), but not
  /// below 64. 0: not lowered.
  double step_ms_max = 0;
};

/// A Backend over a device: the order of its operations, once for CUDA and Vulkan. A step's
/// operations are collected and run together, in logits() or residual(), or after the last layer if
/// neither is wanted. So a failure of the device shows there, and a step that stops between layers
/// costs nothing.
///
/// KV lies token by token, [Hk][2][P][E] for each page and layer, in f16 or in 8 bits. In 8 bits,
/// quants and scales are as on the CPU, and keys lack their bias (engine/backend/cpu/kv). The CPU
/// rounds expanded values to f16, a GPU goes on in f32. If attention over f16 runs on tensor cores,
/// queries and weights are rounded to f16, too. A row's results depend only on its sequence, as
/// backend.h demands. Devices, drivers and the CPU agree within rounding only, so page_format()
/// names the device.
///
/// Fails with kNoMemory, saying how much is missing, if the model or a window of KV does not fit
/// (gpu_fit.h).
Result<std::unique_ptr<Backend>> make_gpu_backend(std::unique_ptr<GpuDevice> device,
                                                  const ModelShape& shape,
                                                  const ModelWeights& weights,
                                                  const GpuOptions& options);

}  // namespace efimd::engine::gpu
