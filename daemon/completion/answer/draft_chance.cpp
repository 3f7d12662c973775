#include "daemon/completion/answer/draft_chance.h"

#include <cmath>

#include "daemon/completion/answer/draft_table.h"
#include "daemon/recall/chance.h"

namespace efimd::completion {

namespace {

float log2_of(std::size_t n) { return static_cast<float>(std::log2(static_cast<double>(n) + 1)); }

double chance_of(const DraftFeatures& features, const std::array<double, kDraftFeatures>& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < features.size(); ++i)
    sum += static_cast<double>(features[i]) * weights[i];
  return recall::chance_of_odds(sum);
}

}  // namespace

DraftFeatures draft_features(const DraftEvidence& evidence, std::size_t position) {
  return {1,
          log2_of(evidence.agreed),
          log2_of(evidence.votes),
          static_cast<float>(evidence.share),
          position == 0 ? 1.0F : 0.0F,
          log2_of(position)};
}

DraftFeatures draft_features(double chance, std::size_t position) {
  return {1,
          static_cast<float>(recall::log_odds(chance)),
          static_cast<float>(chance),
          0,
          position == 0 ? 1.0F : 0.0F,
          log2_of(position)};
}

double drafted_chance(const DraftEvidence& evidence, std::size_t position) {
  return chance_of(draft_features(evidence, position), kDraftWeights[0]);
}

double drafted_chance(double chance, std::size_t position) {
  return chance_of(draft_features(chance, position), kDraftWeights[1]);
}

}  // namespace efimd::completion
