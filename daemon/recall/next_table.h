#pragma once

#include <array>

#include "daemon/recall/candidate.h"

// Written by training/fit_recall.py --next, from places in the training packages. Columns follow
// next_lines.cpp.
// 23395 lines under 6379 candidates whose line was right.
namespace efimd::recall {

// clang-format off
inline constexpr std::array<double, kNextFeatures> kNextWeights = {{-5.7, 5.668, 0.6663, 0.2556, 0.145, -0.03026, 0.1366, 0.2452, -0.4331, -0.8588, -0.05877, -0.8326}};
// clang-format on

}  // namespace efimd::recall
