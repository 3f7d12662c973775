#include "daemon/completion/answer/plans.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "daemon/prompt/places.h"

namespace efimd::completion {

namespace {

/// With no more than this to evaluate no other plan can be better.
constexpr int kCheapTokens = 8;

prompt::Candidate candidate_of(const PlanPlace& place, const DocumentState& document,
                               prompt::Plan plan, const KeptAnchor* kept, int remembered) {
  prompt::Candidate candidate;
  document.judge_head(plan.anchor);
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

/// The views of new anchors that are looked at. The wide window's are among them once idle time has
/// made its spine, because tokenizing a whole file is not a keystroke's work. At a place that no
/// anchor serves the whole window may be in KV: another session has the file open, or a branch came
/// back. So a document without anchors gets its spine at once.
std::vector<prompt::View> new_views(const PlanPlace& place, DocumentState& document, bool served) {
  using prompt::View;
  if (!place.windows.has_first()) return {View::kFull, View::kShortAfter, View::kNear};
  const engine::Tokenizer& tokenizer = place.engine.tokenizer();
  const std::size_t cut = prompt::choose_cut(place.snapshot.bytes(), place.cursor, tokenizer);
  const prompt::Spine::Limits limits = prompt::limits_of(View::kFull, place.windows);
  bool wide = tokenizer.fim().order == engine::FimOrder::kPsm;
  if (wide && document.anchors.empty())
    document.spine.follow(place.snapshot, cut, limits);
  else
    wide = wide && document.spine.follow_edits(place.snapshot, cut, limits);
  if (!wide) return {View::kFirst, View::kFirstShort, View::kNear};
  if (served) return {View::kShortAfter, View::kFirst, View::kFirstShort, View::kNear};
  return {View::kFull, View::kShortAfter, View::kFirst, View::kFirstShort, View::kNear};
}

bool cannot_be_better(const prompt::Candidate& candidate) {
  return prompt::view_rank(candidate.plan.anchor) == 0 && candidate.evaluated <= kCheapTokens;
}

/// The plan of that view in the hole of the fullest narrower stage; nullopt if none serves the cursor,
/// or its increment would soon have grown.
std::optional<prompt::Plan> widened_stage(prompt::View view, DocumentState& document,
                                          const engine::Tokenizer& tokenizer) {
  const Request& asked = *document.asked;
  const KeptAnchor* best = nullptr;
  for (const KeptAnchor& kept : document.anchors) {
    const prompt::Anchor& anchor = kept.anchor;
    const bool narrower = anchor.view > view && !prompt::is_of_first_window(anchor.view);
    if (narrower && !anchor.lacks_head && (best == nullptr || anchor.view < best->anchor.view) &&
        prompt::continued(anchor, *asked.snapshot, asked.cursor, tokenizer, document.windows))
      best = &kept;
  }
  if (best == nullptr) return std::nullopt;
  prompt::Plan plan = prompt::widened(view, best->anchor, *asked.snapshot, asked.cursor,
                                      document.newest_spine_of(view), tokenizer, document.windows);
  if (!prompt::has_room(plan.anchor)) return std::nullopt;
  return plan;
}

}  // namespace

prompt::Plan new_plan(prompt::View view, DocumentState& document,
                      const engine::Tokenizer& tokenizer) {
  const Request& asked = *document.asked;
  std::optional<prompt::Plan> stage = widened_stage(view, document, tokenizer);
  prompt::Plan plan =
      stage ? std::move(*stage)
            : prompt::anchored(view, *asked.snapshot, asked.cursor, document.newest_spine_of(view),
                               tokenizer, document.windows);
  if (plan.anchor.view == prompt::View::kFull && view == prompt::View::kFull &&
      !document.edits.empty())
    return prompt::with_edits(std::move(plan), document.edits, tokenizer);
  return plan;
}

bool is_served(const DocumentState& document, std::size_t cursor,
               const engine::Tokenizer& tokenizer) {
  return std::ranges::any_of(document.anchors, [&](const KeptAnchor& kept) {
    const auto plan = prompt::continued(kept.anchor, *document.asked->snapshot, cursor, tokenizer,
                                        document.windows);
    return plan && prompt::view_rank(plan->anchor) <= prompt::view_rank_of(prompt::View::kFirst);
  });
}

int tokens_missing(const engine::Engine& engine, const KeptAnchor* kept,
                   std::span<const engine::TokenId> tokens) {
  std::ptrdiff_t there = 0;
  if (kept != nullptr && kept->sequence) {
    const std::span<const engine::TokenId> held = engine.held(*kept->sequence);
    there = std::ranges::mismatch(held, tokens).in2 - tokens.begin();
  }
  // Full pages cannot hold more than that, and looking for those of a wide window takes 0.1 ms.
  const std::ptrdiff_t in_pages = std::ssize(tokens) / engine::kPageTokens * engine::kPageTokens;
  if (there < in_pages) there = std::max<std::ptrdiff_t>(there, engine.resident(tokens));
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
  std::size_t fuller_tokens = std::numeric_limits<std::size_t>::max();
  for (const prompt::View view : new_views(place, document, !candidates.empty())) {
    prompt::Plan plan = prompt::anchored(view, place.snapshot, place.cursor,
                                         document.spine_of(view), tokenizer, place.windows);
    // In a small file a poorer view can show just as much.
    if (plan.tokens.size() >= fuller_tokens) continue;
    if (view != prompt::View::kShortAfter || !place.windows.has_first())
      fuller_tokens = plan.tokens.size();
    candidates.push_back(candidate_of(place, document, std::move(plan), nullptr, -1));
  }
  return candidates;
}

}  // namespace efimd::completion
