#pragma once

#include <array>

#include "daemon/completion/answer/draft_chance.h"

// Written by training/fit_recall.py --drafts, from places in the training packages: drafts that were
// looked up, and those in the prompt's step. Columns follow draft_chance.cpp.
// 6545 and 1240 drafted tokens, judged by the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kDraftFeatures>, 2> kDraftWeights = {{
    {{0.09263, 0.1282, -0.02998, 0.7075, -0.6924, 0.2097}},
    {{-0.8336, 0.1054, 0.211, 0, -0.8303, 0.765}},
}};
// clang-format on

}  // namespace efimd::completion
