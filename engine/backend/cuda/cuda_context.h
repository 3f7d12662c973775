#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "engine/backend/cuda/cuda_api.h"
#include "engine/backend/cuda/cuda_device.h"

namespace efimd::engine::cuda {

/// From the driver to the NVIDIA device with most free memory: its primary context, and the module
/// of the kernels.
///
/// Thread: one.  Owns: module and context; what is made in the context goes before it.
/// Fails as open_cuda_device().
class CudaContext {
 public:
  static Result<std::unique_ptr<CudaContext>> open(const CudaOptions& options);
  explicit CudaContext(const CudaApi& api) : api_(api) {}
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaApi& api() const { return api_; }
  const std::string& name() const { return name_; }
  /// The memory that this program may take.
  std::size_t memory_bytes() const { return memory_bytes_; }
  /// The compute capability of the kernels that this card runs. It may lack features of newer
  /// cards. 80 is 8.0.
  int code_capability() const { return code_capability_; }

  Result<void> make_current() const {
    return checked("the context", api_.cuCtxSetCurrent_(context_));
  }
  /// A kernel of the module, with its code loaded.
  Result<CUfunction> function(const std::string& name);
  Result<void> checked(const char* what, CUresult result) const {
    if (result == CUDA_SUCCESS) return {};
    return api_.failed(name_ + ": " + what, result);
  }

 private:
  int capability_of(CUdevice device) const;
  Result<void> choose_device(std::size_t memory_bytes_max);
  Result<void> load_module();

  const CudaApi api_;
  std::size_t memory_bytes_ = 0;
  std::string name_ = "CUDA";
  int code_capability_ = 0;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  std::map<std::string, CUfunction> functions_;
};

}  // namespace efimd::engine::cuda
