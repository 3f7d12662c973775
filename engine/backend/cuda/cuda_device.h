#pragma once

#include <memory>

#include "engine/backend/gpu/gpu_device.h"
#include "engine/backend/gpu/variants.h"

namespace efimd::engine::cuda {

struct CudaOptions {
  const char* library = "libcuda.so.1";
  std::size_t memory_bytes = 0;  ///< at most; 0: what the device has free
  gpu::Variants variants = gpu::kConfirmedVariants;
};

/// The NVIDIA device with most free memory. kNotFound without driver or device. kUnsupported if the
/// driver is older than the toolkit of this build, or if the device is older than the oldest that
/// the kernels were built for.
///
/// A list of operations becomes one CUDA graph, kept as long as it is among the kGraphsMax used
/// last. Lists of copies alone run on a stream of their own. A driver error other than short memory
/// is final: the device answers kDeviceLost from then on.
Result<std::unique_ptr<gpu::GpuDevice>> open_cuda_device(const CudaOptions& options);

}  // namespace efimd::engine::cuda
