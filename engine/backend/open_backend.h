#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/gpu/variants.h"

namespace efimd::engine {

/// Kinds of devices, best first: the order in which they are tried by default.
inline constexpr std::string_view kDeviceKinds[] = {"cuda", "vulkan", "cpu"};

/// A GPU that is there, before it has a model.
struct FoundGpu {
  std::string kind, name;
};

struct DeviceWish {
  /// "auto", or the kind to try first; the others follow in their order. Vulkan on the CPU is only
  /// ever used for "vulkan".
  std::string kind = "auto";
  std::size_t memory_bytes = 0;  ///< most to take of a GPU; 0: what is free there
  gpu::Variants variants = gpu::kConfirmedVariants;  ///< that a GPU may use
  int threads = 0;                                   ///< of the CPU device
  int page_count = 0;                                ///< fewer if a device lacks the memory
  KvType kv_type = KvType::kF16;
  WeightsForm weights = WeightsForm::kMapped;  ///< of the CPU device
  bool weights_at_once = false;                ///< CpuOptions::weights_at_once
  WeightsTold weights_told = {};
  /// The folder of what devices keep between starts (compiled shaders); empty: nothing is kept.
  std::filesystem::path cache_dir = {};
  /// Kinds not to try, with the reason: they failed before.
  std::vector<std::pair<std::string, std::string>> failed = {};
  /// Says why not to use a GPU that is there; empty: nothing speaks against it.
  std::function<std::string(const FoundGpu&)> objection = {};
  /// Kinds whose device was compared with the CPU since it last failed (device_check.h): they are
  /// not compared again.
  std::set<std::string> checked = {};
};

struct OpenedBackend {
  std::unique_ptr<Backend> backend;
  /// The reason for this device: "configured", "the best kind found", or what better ones or this
  /// one lack.
  std::string reason;
};

/// The first device in the wish's order that opens with this model. If a GPU cannot hold the model,
/// it has the layers that fit, and the CPU has the others. Never fails because there is no GPU: an
/// error is the CPU device's.
Result<OpenedBackend> open_backend(const std::shared_ptr<const Model>& model,
                                   const DeviceWish& wish);

/// The device of that kind, and no other, over weights that outlive it. For measuring a part of a
/// model. `wish` says the rest; its kind says whether Vulkan on the CPU counts.
Result<std::unique_ptr<Backend>> open_backend_of(std::string_view kind, const ModelShape& shape,
                                                 const ModelWeights& weights,
                                                 const DeviceWish& wish);

/// A kind of GPU as `doctor` reports it: the device, or why there is none.
struct FoundDevice {
  std::string kind;
  bool usable = false;
  bool refused = false;  ///< there is one, but this user may not open it
  std::string what;
  std::string remedy;
};
/// `kind` as in DeviceWish: Vulkan on the CPU counts only if it is asked for.
std::vector<FoundDevice> find_devices(std::string_view kind);

}  // namespace efimd::engine
