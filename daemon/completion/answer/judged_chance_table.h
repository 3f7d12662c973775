#pragma once

#include <array>

#include "daemon/completion/answer/judged_chance.h"
#include "daemon/recall/chance.h"

// Written by training/fit_recall.py --judged, from places in the training packages. Rows follow
// recall::Place, columns judged_boundaries() and written_features().
// 7047 cursors with a candidate or a text of the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kJudgedFeatures>, 3> kJudgedWeights = {{
    {{1.04, 0.9268, -0.3001, 0.5621, -0.07621, 0.03771}},
    {{1.028, 0.7924, 0.06252, -0.2311, -0.2713, 0.7077}},
    {{1.046, 0.7704, 0.7194, -0.941, 0.3801, 0.2731}},
}};
inline constexpr std::array<std::array<double, kWrittenFeatures>, 3> kWrittenWeights = {{
    {{1.044, 0.4668, -0.0236}},
    {{1.184, 0.4783, -0.2185}},
    {{0.1771, 0.1996, -0.06987}},
}};
inline constexpr std::array<recall::Cut, 3> kJudgedCuts = {{{0.25, 0.10}, {0.25, 0.10}, {0.10, 0.10}}};
// clang-format on

}  // namespace efimd::completion
