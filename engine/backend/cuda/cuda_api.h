#pragma once

#include <cuda.h>

#include <string>

#include "base/error.h"

namespace efimd::engine::cuda {

// Functions of the driver, by the names of cuda.h, which the preprocessor turns into the versions that it means.
// Each run would indent such a list further.
// clang-format off
#define EFIMD_CUDA_FUNCTIONS(X)                                                                  \
  X(cuInit)                                                                                      \
  X(cuDriverGetVersion)                                                                          \
  X(cuGetErrorName)                                                                              \
  X(cuDeviceGetCount)                                                                            \
  X(cuDeviceGet)                                                                                 \
  X(cuDeviceGetName)                                                                             \
  X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease)               \
      X(cuCtxSetCurrent) X(cuMemGetInfo) X(cuMemAlloc) X(cuMemFree) X(cuMemHostAlloc)            \
          X(cuMemFreeHost) X(cuMemHostGetDevicePointer) X(cuModuleLoadData) X(cuModuleUnload)    \
              X(cuModuleGetFunction) X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) \
                  X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuMemcpyAsync)                 \
                      X(cuFuncGetAttribute) X(cuLaunchKernel) X(cuGraphInstantiate)            \
                          X(cuGraphLaunch) X(cuGraphDestroy) X(cuGraphExecDestroy)               \
                              X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord)                \
                                  X(cuEventSynchronize) X(cuStreamWaitEvent)
// clang-format on

/// NVIDIA's driver, found at run time.
struct CudaApi {
#define EFIMD_CUDA_MEMBER(name) decltype(&::name) name##_ = nullptr;
  EFIMD_CUDA_FUNCTIONS(EFIMD_CUDA_MEMBER)
#undef EFIMD_CUDA_MEMBER

  /// Opens the driver's library; kNotFound if there is none. It stays open for the life of the process.
  static Result<CudaApi> open(const char* library);
  std::string name_of(CUresult result) const;
  /// A failed call as an Error: kNoMemory if memory is short, else kDeviceLost, because a context
  /// that failed once never works again.
  tl::unexpected<Error> failed(const std::string& what, CUresult result) const;
};

}  // namespace efimd::engine::cuda
