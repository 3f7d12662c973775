#pragma once

#include <array>

#include "daemon/completion/answer/draft_chance.h"

// Written by training/fit_recall.py --drafts, from the same places as --judged: drafts that were
// looked up, and those in the prompt's step. Columns follow draft_chance.cpp.
// 61862 and 5073 drafted tokens, judged by the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kDraftFeatures>, 2> kDraftWeights = {{
    {{-1.014, 0.2749, 0.07683, 1.137, -0.5099, 0.4343}},
    {{-0.6532, 0.08441, 0.391, 0, -0.6879, 0.7399}},
}};
// clang-format on

}  // namespace efimd::completion
