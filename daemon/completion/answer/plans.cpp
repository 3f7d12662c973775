#include "daemon/completion/answer/plans.h"

#include <algorithm>
#include <utility>

namespace efimd::completion {

namespace {

/// With no more than this to evaluate no other plan can be better.
constexpr int kCheapTokens = 8;

prompt::Candidate candidate_of(const PlanPlace& place, const DocumentState& document,
                               prompt::Plan plan, const KeptAnchor* kept, int remembered) {
  prompt::Candidate candidate;
  candidate.evaluated = tokens_missing(place.engine, kept, plan.tokens);
  if (kept == nullptr) {
    const int start = place.documents.best_start(document, plan.tokens).tokens;
    const int missing = std::max(1, static_cast<int>(plan.tokens.size()) - start);
    candidate.evaluated = std::min(candidate.evaluated, missing);
  }
  candidate.ms = place.costs.ms(candidate.evaluated);
  candidate.remembered = remembered;
  candidate.plan = std::move(plan);
  return candidate;
}

bool cannot_be_better(const prompt::Candidate& candidate) {
  return prompt::poverty(candidate.plan.anchor) == 0 && candidate.evaluated <= kCheapTokens;
}

}  // namespace

int tokens_missing(const engine::Engine& engine, const KeptAnchor* kept,
                   std::span<const engine::TokenId> tokens) {
  std::ptrdiff_t there = engine.resident(tokens);
  if (kept != nullptr && kept->sequence) {
    const std::span<const engine::TokenId> held = engine.held(*kept->sequence);
    const auto own = std::ranges::mismatch(held, tokens).in2 - tokens.begin();
    there = std::max(there, own);
  }
  return std::max(1, static_cast<int>(std::ssize(tokens) - there));
}

std::vector<prompt::Candidate> possible_plans(const PlanPlace& place, DocumentState& document) {
  const engine::Tokenizer& tokenizer = place.engine.tokenizer();
  std::vector<prompt::Candidate> candidates;
  for (std::size_t at = 0; at < document.anchors.size(); ++at) {
    const KeptAnchor& kept = document.anchors[at];
    auto plan =
        prompt::continued(kept.anchor, place.snapshot, place.cursor, tokenizer, place.windows);
    if (plan)
      candidates.push_back(
          candidate_of(place, document, std::move(*plan), &kept, static_cast<int>(at)));
  }
  if (std::ranges::any_of(candidates, cannot_be_better)) return candidates;
  std::size_t fuller_tokens = 0;
  for (const prompt::View view :
       {prompt::View::kFull, prompt::View::kShortAfter, prompt::View::kNear}) {
    prompt::Plan plan = prompt::anchored(view, place.snapshot, place.cursor, document.spine,
                                         tokenizer, place.windows);
    // In a small file a poorer view can show just as much.
    if (view != prompt::View::kFull && plan.tokens.size() >= fuller_tokens) continue;
    fuller_tokens = plan.tokens.size();
    candidates.push_back(candidate_of(place, document, std::move(plan), nullptr, -1));
  }
  return candidates;
}

}  // namespace efimd::completion
