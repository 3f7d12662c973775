#include "engine/backend/cuda/cuda_api.h"

#include <dlfcn.h>

namespace efimd::engine::cuda {

#define EFIMD_CUDA_TEXT(name) #name
#define EFIMD_CUDA_NAME(name) EFIMD_CUDA_TEXT(name)

Result<CudaApi> CudaApi::open(const char* library) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(Fault::kNotFound, std::string(library) + " is not installed",
                "install NVIDIA's driver, if there is an NVIDIA card");
  CudaApi api;
  std::string missing;
#define EFIMD_CUDA_LOAD(name)                                                                \
  api.name##_ = reinterpret_cast<decltype(&::name)>(::dlsym(handle, EFIMD_CUDA_NAME(name))); \
  if (api.name##_ == nullptr) missing = EFIMD_CUDA_NAME(name);
  EFIMD_CUDA_FUNCTIONS(EFIMD_CUDA_LOAD)
#undef EFIMD_CUDA_LOAD
  if (missing.empty()) return api;
  return fail(Fault::kUnsupported, std::string(library) + " has no " + missing,
              "update NVIDIA's driver");
}

std::string CudaApi::name_of(CUresult result) const {
  const char* name = nullptr;
  if (cuGetErrorName_(result, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return "CUDA error " + std::to_string(static_cast<int>(result));
}

tl::unexpected<Error> CudaApi::failed(const std::string& what, CUresult result) const {
  const std::string message = what + ": " + name_of(result);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return fail(Fault::kNoMemory, message, "close other programs, or choose a smaller model");
  return fail(Fault::kDeviceLost, message, "update NVIDIA's driver if it happens again");
}

}  // namespace efimd::engine::cuda
