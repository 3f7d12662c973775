#pragma once

#include <array>

#include "daemon/recall/chance.h"

// Fitted by training/fit_recall.py; its rows follow Place.
namespace efimd::recall {

inline constexpr std::array<std::array<double, kFeatures>, 3> kChanceWeights = {{
    {{-1, 0.2, 1, 0.3, 0, 0, 0, 0, 0, 0, -0.2, 0, 0, 0}},
    {{-1, 0.2, 1, 0.3, 0, 0, 0, 0, 0, 0, -0.2, 0, 0, 0}},
    {{-3, 0.2, 1, 0.3, 0, 0, 0, 0, 0, 0, -0.2, 0, 0, 0}},
}};

inline constexpr std::array<Cut, 3> kCuts = {{{0.5, 0.3}, {0.5, 0.3}, {0.9, 0.8}}};

}  // namespace efimd::recall
