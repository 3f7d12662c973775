#pragma once

#include <array>

#include "daemon/completion/answer/judged_chance.h"
#include "daemon/recall/chance.h"

// Written by training/fit_recall.py --judged, from places in the training packages. Rows follow
// recall::Place, columns judged_boundaries() and written_features().
// 4461 cursors with a candidate or a text of the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kJudgedFeatures>, 3> kJudgedWeights = {{
    {{1.035, 0.8969, -0.3258, 0.5947, -0.1019, 0.07652}},
    {{1.023, 0.7968, 0.05479, -0.2057, -0.05659, 0.4726}},
    {{0.8464, 0.7389, 0.08709, 0.08709, 0.08709, 0.08709}},
}};
inline constexpr std::array<std::array<double, kWrittenFeatures>, 3> kWrittenWeights = {{
    {{1.226, 0.4455, -0.0862}},
    {{1.252, 0.4837, -0.2336}},
    {{-0.2014, -0.03453, -0.1656}},
}};
// clang-format on

inline constexpr std::array<recall::Cut, 3> kJudgedCuts = {{{0.25, 0.10}, {0.25, 0.10}, {0.10, 0.10}}};

}  // namespace efimd::completion
