#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "engine/backend/backend.h"
#include "engine/model/model.h"

namespace efimd::service {

/// The speed that a model would have on a device.
///
/// It is measured, not looked up. The device runs the model's first layer, then more layers than
/// any cache holds; a line through both gives the whole. So a file of 15 GB is judged by its first
/// 256 MiB and its output matrix.
struct ExpectedSpeed {
  std::string device_kind, device_name;
  double generation_tokens_per_s = 0;  ///< steps of one token after kExpectedBehindTokens
  double prompt_tokens_per_s = 0;      ///< steps of as many as the device takes, after as many
  int layers_measured = 0;
};

inline constexpr int kExpectedBehindTokens = 256;

/// Makes the device over a part of the model, with `page_count` pages of KV.
using MakeDevice = std::function<Result<std::unique_ptr<engine::Backend>>(
    const engine::ModelShape& shape, const engine::ModelWeights& weights, int page_count)>;

struct SpeedLimits {
  int step_tokens_max = 512;  ///< of the steps of many
  /// Of steps of the layers; the first one tells whether all would take longer.
  double seconds_max = std::numeric_limits<double>::infinity();
  std::stop_token stop = {};  ///< seen between layers
};

/// Takes about a second, and the time to read those layers from the disk. Fails as the device
/// does, and with kStopped; with kUnsupported if it is too slow to be measured.
Result<ExpectedSpeed> expected_speed(const engine::Model& model, const MakeDevice& make_device,
                                     const SpeedLimits& limits = {});
/// The same of weights that come from no file; `weight_bytes` counts all of them once.
Result<ExpectedSpeed> expected_speed(const engine::ModelShape& shape,
                                     const engine::ModelWeights& weights,
                                     std::uint64_t weight_bytes, const MakeDevice& make_device,
                                     const SpeedLimits& limits = {});

/// A kind of device that this machine has and this build can use.
struct DeviceHere {
  std::string kind;  ///< "cpu", "cuda", "vulkan"
  MakeDevice make;
  /// Of a larger model the CPU has no panels; it is there a second time for such. 0: there is no limit.
  std::uint64_t weight_bytes_max = 0;
};
/// Those for models with so many bytes of weights. The CPU is always among them, last; once for
/// each form in which it would have the weights, panels first. `config` outlives the result.
std::vector<DeviceHere> devices_here(const Config& config,
                                     std::span<const std::uint64_t> weight_bytes);

}  // namespace efimd::service
