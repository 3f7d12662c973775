#pragma once

#include <array>

#include "daemon/recall/chance.h"

// Written by training/fit_recall.py, from places in the training packages that stand there. Rows
// follow Place, columns follow features_of().
// 3500 cursors inside lines, 3500 at starts, 3500 behind finished lines.
namespace efimd::recall {

// clang-format off
inline constexpr std::array<std::array<double, kFeatures>, 3> kChanceWeights = {{
    {{-3.652, 0.4012, 2.094, 0.2487, 0.2475, 0.1998, 1.291, -0.1552, -0.1259, 1.125, -0.3944, -0.156, -0.1777, 0.06473, -4.267, 0.3501, -0.7382}},
    {{-3.052, 0.1563, 2.104, 0.1687, 0.2594, 0.2093, 1.518, -0.1749, 0.1706, 1.734, -0.5662, -0.1115, 0, 2.271, 0, 0, 0}},
    {{-1.773, 0.281, -0.3956, 0.5126, 0.06044, 0.1956, 1.402, -0.1085, 0.08622, 1.233, -0.3869, -0.02607, -0.256, 0.6907, -3.405, 0.5053, -0.5264}},
}};
// clang-format on

inline constexpr std::array<Cut, 3> kCuts = {{{0.20, 0.10}, {0.25, 0.10}, {0.10, 0.10}}};

}  // namespace efimd::recall
