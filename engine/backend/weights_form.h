#pragma once

#include <functional>
#include <string>

namespace efimd::engine {

/// How the CPU device keeps matrices. Results are the same, bit for bit.
enum class WeightsForm {
  kMapped,  ///< where the file is mapped: no memory of their own
  kPanels,  ///< a private copy that kernels read faster, as soon as it is made
  kAuto,    ///< panels, if they fit within half of the memory that is available
};

/// Told what is in use and why: "panels", "mapped: ...". From any thread, also while the device is
/// made.
using WeightsTold = std::function<void(std::string)>;

}  // namespace efimd::engine
