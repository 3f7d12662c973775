#include "daemon/prompt/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

namespace efimd::prompt {

double StepCosts::ms(int tokens) const {
  if (tokens <= 0) return 0;
  if (points.empty()) return tokens / 4.0;
  if (points.size() == 1)
    return points.front().ms * std::max(1.0, static_cast<double>(tokens) / points.front().tokens);
  if (tokens <= points.front().tokens) return points.front().ms;
  std::size_t upper = 1;
  while (upper + 1 < points.size() && points[upper].tokens < tokens) ++upper;
  const Point& a = points[upper - 1];
  const Point& b = points[upper];
  const double slope = (b.ms - a.ms) / (b.tokens - a.tokens);
  return std::max(a.ms, a.ms + slope * (tokens - a.tokens));
}

int StepCosts::tokens_within(double limit_ms) const {
  int tokens = 1;
  const int most = points.empty() ? 1 : points.back().tokens;
  while (tokens < most && ms(tokens + 1) <= limit_ms) ++tokens;
  return tokens;
}

void StepCosts::learn(int tokens, double ms) {
  for (Point& point : points) {
    const int steps = std::max(1, (point.tokens + tokens - 1) / tokens);
    point.ms = std::min(point.ms, steps * ms);
  }
}

namespace {

std::size_t grown_tokens(const Anchor& anchor) {
  constexpr std::size_t kAfterShare = 8;
  const bool may_grow = !is_of_first_window(anchor.view);
  return std::max(kGrownTokens, may_grow ? anchor.after.size() / kAfterShare : 0);
}

}  // namespace

bool has_grown(const Anchor& anchor) { return anchor.increment.size() > grown_tokens(anchor); }

bool has_room(const Anchor& anchor) { return 2 * anchor.increment.size() <= grown_tokens(anchor); }

int view_rank(const Anchor& anchor) {
  const bool may_grow = anchor.view == View::kFull || anchor.view == View::kFirst;
  const bool is_outdated =
      (may_grow && has_grown(anchor)) || (anchor.lacks_head && anchor.view == View::kFull);
  return view_rank_of(anchor.view) + (is_outdated ? 1 : 0);
}

std::size_t choose(std::span<const Candidate> candidates) {
  assert(!candidates.empty());
  double limit = kFirstAnswerMs;
  double kept = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates)
    if (candidate.remembered >= 0) kept = std::min(kept, candidate.ms);
  limit = std::min(limit, kept + kFullerMs);
  const auto rank = [&](const Candidate& candidate) {
    const bool affordable = candidate.ms <= limit;
    const int poor = view_rank(candidate.plan.anchor);
    return std::tuple(!affordable, affordable ? poor : 0, candidate.ms, poor);
  };
  const auto best = std::ranges::min_element(candidates, {}, rank);
  return static_cast<std::size_t>(best - candidates.begin());
}

std::string describe(const Candidate& candidate) {
  const Anchor& anchor = candidate.plan.anchor;
  const std::string head =
      anchor.path.other_files == 0
          ? ""
          : fmt::format(", {} other files in {} tokens{}", anchor.path.other_files,
                        anchor.path.other_tokens, anchor.lacks_head ? " (as they were)" : "");
  return fmt::format("{}, {}: {} of {} tokens, {:.0f} % of the file{}, {:.0f} ms",
                     view_name(anchor.view), candidate.remembered >= 0 ? "kept" : "new",
                     candidate.evaluated, candidate.plan.tokens.size(), 100 * candidate.plan.shown,
                     head, candidate.ms);
}

}  // namespace efimd::prompt
