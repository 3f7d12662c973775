#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/gpu/gpu_backend.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"

namespace efimd::engine {

/// A Backend for a GPU that cannot hold all layers: it runs the first ones, as many as fit with
/// their KV. The CPU runs the others and has the output matrix. x goes from one to the other once a
/// step; a page is the GPU's bytes, then the CPU's.
///
/// Fails with kNoMemory if not one layer fits. `model` owns the weights, if they are of a file.
Result<std::unique_ptr<Backend>> make_split_backend(std::unique_ptr<gpu::GpuDevice> device,
                                                    const ModelShape& shape,
                                                    const ModelWeights& weights,
                                                    const gpu::GpuOptions& of_gpu,
                                                    const CpuOptions& of_cpu,
                                                    std::shared_ptr<const Model> model = nullptr);

}  // namespace efimd::engine
