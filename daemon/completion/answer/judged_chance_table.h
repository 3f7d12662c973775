#pragma once

#include <array>

#include "daemon/completion/answer/judged_chance.h"

// Written by training/fit_recall.py --judged, from places in the training packages. Rows follow
// recall::Place, columns judged_boundaries() and written_features().
// 2095 cursors with a candidate or a text of the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kJudgedFeatures>, 3> kJudgedWeights = {{
    {{0.8904, 0.8328, -0.02384, 0.1703, -0.1162, 0.1719}},
    {{0.989, 0.8091, 0.03377, 0.02896, -0.03698, 0.1873}},
    {{0, 1, 0, 0, 0, 0}},
}};
inline constexpr std::array<std::array<double, kWrittenFeatures>, 3> kWrittenWeights = {{
    {{1.163, 0.4796, -0.04798}},
    {{0.873, 0.3918, -0.2605}},
    {{-0.3169, 0.4118, 0.01005}},
}};
// clang-format on

}  // namespace efimd::completion
