#include "engine/backend/cuda/cuda_context.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

/// The kernels for every architecture of the build (kernels/kernels.cu).
extern "C" const unsigned char efimd_cuda_module[];  // NOLINT(readability-identifier-naming)

namespace efimd::engine::cuda {

namespace {

/// The oldest for which there are kernels (kernels/CMakeLists.txt): 7.5.
constexpr int kCapabilityMin = 75;
/// Take at most this share of the free memory; leave the rest to the desktop.
constexpr std::size_t memory_share(std::size_t bytes) { return bytes / 16 * 15; }

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string capability_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

/// Why no card can be used. `newest` is the greatest compute capability of those there are; `refused`
/// is what the driver answered for one that the kernels would run on.
tl::unexpected<Error> no_card(const CudaApi& api, int newest, CUresult refused) {
  if (newest == 0)
    return fail(Fault::kNotFound, "no NVIDIA device", "check that nvidia-smi lists one");
  if (newest < kCapabilityMin)
    return fail(Fault::kNotFound,
                "the NVIDIA device has compute capability " + capability_text(newest) +
                    ", the kernels need " + capability_text(kCapabilityMin),
                "such a card runs by Vulkan, if its driver has that");
  if (refused == CUDA_SUCCESS || refused == CUDA_ERROR_OUT_OF_MEMORY)
    return fail(Fault::kNotFound, "the memory of the NVIDIA device is taken",
                "close programs that use it; nvidia-smi lists them");
  return fail(Fault::kNotFound, "the NVIDIA device cannot be opened: " + api.name_of(refused),
              "check that nvidia-smi lists it, and whether another program has it alone");
}

/// If the driver is loaded and only CUDA's device is missing, nvidia-smi sees nothing wrong. A
/// program without the right to new privileges, as a service is, cannot have it made.
std::string remedy_of_driver() {
  std::error_code error;
  namespace fs = std::filesystem;
  if (fs::exists("/dev/nvidiactl", error) && !fs::exists("/dev/nvidia-uvm", error))
    return "run `sudo nvidia-modprobe -u -c0` once, or have the module nvidia-uvm loaded at boot";
  return "check that NVIDIA's driver is loaded (nvidia-smi)";
}

}  // namespace

CudaContext::~CudaContext() {
  if (context_ == nullptr) return;
  // After a sticky error all of this fails, and the context takes everything with it.
  api_.cuCtxSetCurrent_(context_);
  if (module_ != nullptr) api_.cuModuleUnload_(module_);
  api_.cuCtxSetCurrent_(nullptr);
  api_.cuDevicePrimaryCtxRelease_(device_);
}

Result<std::unique_ptr<CudaContext>> CudaContext::open(const CudaOptions& options) {
  const auto api = CudaApi::open(options.library);
  if (!api) return tl::unexpected(api.error());
  if (const CUresult done = api->cuInit_(0); done != CUDA_SUCCESS)
    return fail(Fault::kNotFound, "no NVIDIA device: " + api->name_of(done), remedy_of_driver());
  auto context = std::make_unique<CudaContext>(*api);
  int version = 0;
  api->cuDriverGetVersion_(&version);
  if (version < CUDA_VERSION / 1000 * 1000)
    return fail(Fault::kUnsupported,
                "NVIDIA's driver is made for CUDA " + version_text(version) +
                    ", this efimd needs " + version_text(CUDA_VERSION / 1000 * 1000),
                "update NVIDIA's driver");
  Result<void> done = context->choose_device(options.memory_bytes);
  if (done) done = context->load_module();
  if (!done) return tl::unexpected(std::move(done).error());
  return context;
}

int CudaContext::capability_of(CUdevice device) const {
  int major = 0, minor = 0;
  api_.cuDeviceGetAttribute_(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  api_.cuDeviceGetAttribute_(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return 10 * major + minor;
}

Result<void> CudaContext::choose_device(std::size_t memory_bytes_max) {
  int count = 0;
  api_.cuDeviceGetCount_(&count);
  std::size_t most = 0;
  int newest = 0;
  CUresult refused = CUDA_SUCCESS;
  for (int index = 0; index < count; ++index) {
    CUdevice device = 0;
    CUcontext context = nullptr;
    std::size_t free = 0, total = 0;
    if (api_.cuDeviceGet_(&device, index) != CUDA_SUCCESS) continue;
    const int capability = capability_of(device);
    newest = std::max(newest, capability);
    if (capability < kCapabilityMin) continue;
    CUresult opened = api_.cuDevicePrimaryCtxRetain_(&context, device);
    const bool retained = opened == CUDA_SUCCESS;
    if (retained) opened = api_.cuCtxSetCurrent_(context);
    if (opened == CUDA_SUCCESS) opened = api_.cuMemGetInfo_(&free, &total);
    if (opened != CUDA_SUCCESS || free <= most) {
      if (opened != CUDA_SUCCESS) refused = opened;
      if (retained) api_.cuDevicePrimaryCtxRelease_(device);
      continue;
    }
    if (context_ != nullptr) api_.cuDevicePrimaryCtxRelease_(device_);
    most = free;
    device_ = device;
    context_ = context;
  }
  if (context_ == nullptr) return no_card(api_, newest, refused);
  std::array<char, 128> name = {};
  api_.cuDeviceGetName_(name.data(), static_cast<int>(name.size()) - 1, device_);
  name_ =
      std::string(name.data()) + ", compute capability " + capability_text(capability_of(device_));
  const std::size_t free = memory_share(most);
  memory_bytes_ = memory_bytes_max == 0 ? free : std::min(memory_bytes_max, free);
  return make_current();
}

Result<void> CudaContext::load_module() {
  const CUresult done = api_.cuModuleLoadData_(&module_, efimd_cuda_module);
  if (done == CUDA_ERROR_OUT_OF_MEMORY) return checked("the kernels", done);
  if (done != CUDA_SUCCESS)
    return fail(Fault::kUnsupported,
                name_ + " does not take this build's kernels: " + api_.name_of(done),
                "update NVIDIA's driver, or build for this card: -D EFIMD_CUDA_ARCHITECTURES=...");
  const auto any = function("merge_f32");
  if (!any) return tl::unexpected(any.error());
  return checked("the kernels",
                 api_.cuFuncGetAttribute_(&code_capability_, CU_FUNC_ATTRIBUTE_PTX_VERSION, *any));
}

Result<CUfunction> CudaContext::function(const std::string& name) {
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second;
  CUfunction found = nullptr;
  if (auto got = checked(name.c_str(), api_.cuModuleGetFunction_(&found, module_, name.c_str()));
      !got)
    return tl::unexpected(std::move(got).error());
  // Code is loaded when it is first needed, which must not be during a capture: asking for an
  // attribute loads it.
  int registers = 0;
  if (auto loaded = checked(
          name.c_str(), api_.cuFuncGetAttribute_(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, found));
      !loaded)
    return tl::unexpected(std::move(loaded).error());
  functions_.emplace(name, found);
  return found;
}

}  // namespace efimd::engine::cuda
