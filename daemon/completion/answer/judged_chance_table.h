#pragma once

#include <array>

#include "daemon/completion/answer/judged_chance.h"
#include "daemon/recall/chance.h"

// Written by training/fit_recall.py --judged, from places in projects that the model has not seen
// (training/README.md). Rows follow recall::Place, columns judged_boundaries() and
// written_features().
// 3317 cursors with a candidate or a text of the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kJudgedFeatures>, 3> kJudgedWeights = {{
    {{1.458, 1.005, -0.1737, 0.1972, -0.01734, 0.3023}},
    {{0.9956, 0.7657, 0.02895, 0.1333, -0.04189, 0.1452}},
    {{1.697, 1.061, 0.522, 0.01606, 0.1961, -0.3949}},
}};
inline constexpr std::array<std::array<double, kWrittenFeatures>, 3> kWrittenWeights = {{
    {{2.084, 0.6705, -0.2133}},
    {{2.327, 0.6333, -0.3542}},
    {{0.06619, 0.5077, 0.1458}},
}};
inline constexpr std::array<recall::Cut, 3> kJudgedCuts = {{{0.30, 0.10}, {0.25, 0.10}, {0.10, 0.10}}};
// clang-format on

}  // namespace efimd::completion
