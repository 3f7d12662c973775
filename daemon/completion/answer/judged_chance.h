#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "daemon/completion/generate/generate.h"
#include "daemon/recall/candidate.h"
#include "daemon/recall/chance.h"

namespace efimd::completion {

/// What the chance of a recalled text is computed from once the model has judged it too.
inline constexpr std::size_t kJudgedFeatures = 6;
using JudgedFeatures = std::array<float, kJudgedFeatures>;

/// A candidate's boundary that the model's tokens reach, with both judgements.
struct JudgedBoundary {
  std::size_t bytes = 0;
  JudgedFeatures features{};
};

/// The boundaries up to the end of the judged tokens, ascending. `judged` are those of the candidate's
/// own text.
std::vector<JudgedBoundary> judged_boundaries(const recall::Candidate& candidate,
                                              std::span<const JudgedToken> judged);

/// The chance that the user types a text with these features at such a place.
double judged_chance(const JudgedFeatures& features, recall::Place place);

/// The candidate with chances over both judgements. Behind the judged tokens recall's chances go on,
/// in the same proportion. What is shown is chosen anew.
recall::Candidate with_model(recall::Candidate candidate, std::span<const JudgedToken> judged);

/// From which chance on a candidate that the model judged is worth showing.
recall::Cut judged_cut(recall::Place place);

/// Chooses anew what is shown, by the chances of the boundaries.
void cut_anew(recall::Candidate& candidate, const recall::Cut& cut);

/// What the chance of a text that the model wrote is computed from: the product of its tokens'
/// probabilities, and its length.
inline constexpr std::size_t kWrittenFeatures = 3;
using WrittenFeatures = std::array<float, kWrittenFeatures>;
WrittenFeatures written_features(double confidence, std::size_t bytes);
/// The share of such a text that the user may expect to be right, from its beginning.
double written_share(const WrittenFeatures& features, recall::Place place);

}  // namespace efimd::completion
