#pragma once

#include <array>

#include "daemon/recall/candidate.h"

// Written by training/fit_recall.py --next, from places in the training packages. Columns follow
// next_lines.cpp.
// 16223 lines under 2879 candidates whose line was right.
namespace efimd::recall {

// clang-format off
inline constexpr std::array<double, kNextFeatures> kNextWeights = {{-4.854, 4.726, 0.5293, 0.3226, 0.1464, -0.5878, 0.2605, 0.3552, -0.402, -0.8166, -4.957e-05, -0.7382}};
// clang-format on

}  // namespace efimd::recall
