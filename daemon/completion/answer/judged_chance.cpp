#include "daemon/completion/answer/judged_chance.h"

#include <algorithm>
#include <cmath>

#include "daemon/completion/answer/judged_chance_table.h"

namespace efimd::completion {

namespace {

/// Less likely than this is as good as excluded.
constexpr double kLeast = 1e-6;

double log_of(double chance) { return std::log(std::max(chance, kLeast)); }

template <std::size_t N>
double logistic(const std::array<float, N>& features, const std::array<double, N>& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < N; ++i) sum += static_cast<double>(features[i]) * weights[i];
  return recall::chance_of_odds(sum);
}

std::size_t row_of(recall::Place place) { return static_cast<std::size_t>(place); }

}  // namespace

std::vector<JudgedBoundary> judged_boundaries(const recall::Candidate& candidate,
                                              std::span<const JudgedToken> judged) {
  std::vector<JudgedBoundary> found;
  double sum = 0, least = 0;
  std::size_t token = 0;
  for (const recall::Boundary& boundary : candidate.boundaries) {
    // A token may go on after the boundary: then it speaks for it all the same.
    while (token < judged.size() && (token == 0 || judged[token - 1].end < boundary.bytes)) {
      const double chance = log_of(judged[token].probability);
      sum += chance;
      least = std::min(least, chance);
      ++token;
    }
    if (token == 0) break;
    // Of the first boundary also a part says something.
    const bool is_reached = judged[token - 1].end >= boundary.bytes;
    if (!is_reached && !found.empty()) break;
    const double first = log_of(judged.front().probability);
    found.push_back({boundary.bytes,
                     {1, static_cast<float>(recall::log_odds(boundary.chance)),
                      static_cast<float>(sum), static_cast<float>(least), static_cast<float>(first),
                      static_cast<float>(sum / static_cast<double>(token))}});
    if (!is_reached) break;
  }
  return found;
}

double judged_chance(const JudgedFeatures& features, recall::Place place) {
  return logistic(features, kJudgedWeights[row_of(place)]);
}

recall::Candidate with_model(recall::Candidate candidate, std::span<const JudgedToken> judged) {
  const recall::Place place = candidate.evidence.place;
  const std::vector<JudgedBoundary> heard = judged_boundaries(candidate, judged);
  if (heard.empty()) return candidate;
  double chance = 1, before = 1;  // of both, and of recall alone: up to the boundary before
  for (std::size_t i = 0; i < candidate.boundaries.size(); ++i) {
    recall::Boundary& boundary = candidate.boundaries[i];
    chance = i < heard.size() ? std::min(chance, judged_chance(heard[i].features, place))
                              : chance * std::min(1.0, boundary.chance / std::max(kLeast, before));
    before = boundary.chance;
    boundary.chance = chance;
  }
  cut_anew(candidate, judged_cut(place));
  return candidate;
}

recall::Cut judged_cut(recall::Place place) { return kJudgedCuts[row_of(place)]; }

void cut_anew(recall::Candidate& candidate, const recall::Cut& cut) {
  candidate.shown = 0;
  candidate.chance = 0;
  for (const recall::Boundary& boundary : candidate.boundaries) {
    if (candidate.boundaries.front().chance < cut.show || boundary.chance < cut.hold) continue;
    candidate.shown = boundary.bytes;
    candidate.chance = boundary.chance;
  }
}

WrittenFeatures written_features(double confidence, std::size_t bytes) {
  return {1, static_cast<float>(log_of(confidence)),
          static_cast<float>(std::log2(1.0 + static_cast<double>(bytes)))};
}

double written_share(const WrittenFeatures& features, recall::Place place) {
  return logistic(features, kWrittenWeights[row_of(place)]);
}

}  // namespace efimd::completion
