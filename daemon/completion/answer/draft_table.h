#pragma once

#include <array>

#include "daemon/completion/answer/draft_chance.h"

// Written by training/fit_recall.py --drafts, from the same places as --judged: drafts that were
// looked up, and those in the prompt's step. Columns follow draft_chance.cpp.
// 61602 and 5004 drafted tokens, judged by the bundled model.
namespace efimd::completion {

// clang-format off
inline constexpr std::array<std::array<double, kDraftFeatures>, 2> kDraftWeights = {{
    {{-0.9115, 0.2506, 0.1103, 1.083, -0.5793, 0.3869}},
    {{-0.8609, 0.07566, 0.7768, 0, -0.7588, 0.6555}},
}};
// clang-format on

}  // namespace efimd::completion
