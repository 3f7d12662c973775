#pragma once

#include <functional>
#include <string>

namespace efimd::engine {

/// The form in which the CPU device keeps matrices. Results are the same, bit for bit.
enum class WeightsForm {
  kMapped,  ///< in place in the mapped file: no memory of their own
  kPanels,  ///< a private copy that kernels read faster, when it is made
  kAuto,    ///< panels, if they fit within half of the memory that is available
};

/// Gets the form in use and the reason: "panels", "mapped: ...". From any thread, also while the
/// device is made.
using WeightsTold = std::function<void(std::string)>;

}  // namespace efimd::engine
