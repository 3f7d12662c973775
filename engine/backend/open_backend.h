#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"

namespace efimd::engine {

/// Kinds of devices, best first: what is taken where nobody says otherwise.
inline constexpr std::string_view kDeviceKinds[] = {"cuda", "vulkan", "cpu"};

struct DeviceWish {
  /// "auto", or the kind to try first; the others follow in their order. Vulkan on the CPU is only ever used for
  /// "vulkan".
  std::string kind = "auto";
  std::size_t memory_bytes = 0;  ///< of a GPU, at most; 0: what is free there
  int threads = 0;               ///< of the CPU device
  int page_count = 0;            ///< fewer where a device has not the memory
  KvType kv_type = KvType::kF16;
  WeightsForm weights = WeightsForm::kMapped;  ///< of the CPU device
  WeightsTold weights_told = {};
  /// What devices keep between starts (compiled shaders); empty: nothing.
  std::filesystem::path cache_dir = {};
  /// Kinds not to try, with the reason: they failed before.
  std::vector<std::pair<std::string, std::string>> failed = {};
  /// Kinds whose device was compared with the CPU since it last failed (device_check.h): they open sooner.
  std::set<std::string> checked = {};
};

struct OpenedBackend {
  std::unique_ptr<Backend> backend;
  /// Why this device: "configured", "the best kind found", or what the better ones, or it itself, lack.
  std::string reason;
};

/// The first device of the wish's order that opens with this model: a GPU that cannot hold it has the layers that fit, and
/// the CPU the others. Never fails for want of a GPU: the error is the CPU
/// device's.
Result<OpenedBackend> open_backend(const std::shared_ptr<const Model>& model,
                                   const DeviceWish& wish);

/// The device of that kind, and no other, over weights that outlive it: to measure a part of a model. `wish` says the
/// rest, and its kind whether Vulkan on the CPU counts.
Result<std::unique_ptr<Backend>> open_backend_of(std::string_view kind, const ModelShape& shape,
                                                 const ModelWeights& weights,
                                                 const DeviceWish& wish);

/// A kind of GPU as `doctor` tells it: the device, or why there is none.
struct FoundDevice {
  std::string kind;
  bool usable = false;
  bool refused = false;  ///< there is one, but this user may not open it
  std::string what;
  std::string remedy;
};
/// `kind` as in DeviceWish: Vulkan on the CPU counts only where it is asked for.
std::vector<FoundDevice> find_devices(std::string_view kind);

}  // namespace efimd::engine
