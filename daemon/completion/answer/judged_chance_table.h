#pragma once

#include <array>

#include "daemon/completion/answer/judged_chance.h"

// Written by training/fit_recall.py --judged, from places in the training packages. Rows follow
// recall::Place, columns judged_boundaries() and written_features().
// 1613 cursors with a candidate or a text of the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kJudgedFeatures>, 3> kJudgedWeights = {{
    {{1.066, 0.6707, 0.08131, 0.112, -0.2094, 0.1095}},
    {{0, 1, 0, 0, 0, 0}},
    {{0, 1, 0, 0, 0, 0}},
}};
inline constexpr std::array<std::array<double, kWrittenFeatures>, 3> kWrittenWeights = {{
    {{1.434, 0.4578, -0.1315}},
    {{1.623, 0.6245, -0.2288}},
    {{-0.4461, 0.07587, -0.05708}},
}};
// clang-format on

}  // namespace efimd::completion
