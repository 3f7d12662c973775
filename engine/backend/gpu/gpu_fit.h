#pragma once

#include "base/error.h"
#include "engine/backend/gpu/gpu_backend.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"

namespace efimd::engine::gpu {

/// How many of the wanted pages the device's operands and memory hold beside the weights. kNoMemory
/// if they are fewer than a window of 256 tokens.
Result<int> pages_that_fit(const GpuDevice& device, const ModelShape& shape,
                           const ModelWeights& weights, const GpuOptions& options);

/// How many of the first layers fit without the output matrix and with all wanted pages; fewer than
/// all. If not one fits, pages give way. 0: none.
int layers_that_fit(const DeviceLimits& limits, const ModelShape& shape,
                    const ModelWeights& weights, const GpuOptions& options);

}  // namespace efimd::engine::gpu
