#pragma once

#include <array>

#include "daemon/completion/answer/judged_chance.h"
#include "daemon/recall/chance.h"

// Written by training/fit_recall.py --judged, from places in projects that the model has not seen
// (training/README.md). Rows follow recall::Place, columns judged_boundaries() and
// written_features().
// 3325 cursors with a candidate or a text of the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kJudgedFeatures>, 3> kJudgedWeights = {{
    {{1.246, 0.9988, -0.01855, 0.2016, -0.0553, 0.1615}},
    {{0.9473, 0.8637, 0.0251, 0.03684, -0.00666, 0.2121}},
    {{0, 1, 0, 0, 0, 0}},
}};
inline constexpr std::array<std::array<double, kWrittenFeatures>, 3> kWrittenWeights = {{
    {{2.046, 0.6108, -0.2457}},
    {{2.318, 0.6258, -0.3501}},
    {{0.1705, 0.5046, 0.06806}},
}};
inline constexpr std::array<recall::Cut, 3> kJudgedCuts = {{{0.25, 0.10}, {0.30, 0.10}, {0.10, 0.10}}};
// clang-format on

}  // namespace efimd::completion
