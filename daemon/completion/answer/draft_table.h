#pragma once

#include <array>

#include "daemon/completion/answer/draft_chance.h"

// Written by training/fit_recall.py --drafts, from places in the training packages: drafts that were
// looked up, and those in the prompt's step. Columns follow draft_chance.cpp.
// 22585 and 2945 drafted tokens, judged by the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kDraftFeatures>, 2> kDraftWeights = {{
    {{-0.5395, 0.227, 0.03628, 1.199, -0.6778, 0.3041}},
    {{-0.3677, 0.1436, -0.03021, 0, -0.9636, 0.6653}},
}};
// clang-format on

}  // namespace efimd::completion
