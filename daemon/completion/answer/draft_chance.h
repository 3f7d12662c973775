#pragma once

#include <array>
#include <cstddef>

namespace efimd::completion {

/// What speaks for a draft: the match that it was taken from (recall::Continuation).
struct DraftEvidence {
  std::size_t agreed = 0;
  std::size_t votes = 0;
  double share = 0;
};

/// The inputs of a drafted token's chance, in the order of draft_chance.cpp.
inline constexpr std::size_t kDraftFeatures = 6;
using DraftFeatures = std::array<float, kDraftFeatures>;

/// `position` counts the draft's tokens from 0.
DraftFeatures draft_features(const DraftEvidence& evidence, std::size_t position);
/// Of a draft in the prompt's step: a candidate whose beginning is right with this chance.
DraftFeatures draft_features(double chance, std::size_t position);

/// That the model chooses the token at this place of the draft itself, if it chose all before it.
double drafted_chance(const DraftEvidence& evidence, std::size_t position);
double drafted_chance(double chance, std::size_t position);

}  // namespace efimd::completion
