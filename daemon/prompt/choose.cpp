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

int poverty(const Anchor& anchor) {
  constexpr int kGrown = 1;
  if (anchor.view == View::kFull) return anchor.increment.size() > kGrownTokens ? kGrown : 0;
  return kGrown + static_cast<int>(anchor.view);
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
    return std::tuple(!affordable, affordable ? poverty(candidate.plan.anchor) : 0, candidate.ms);
  };
  const auto best = std::ranges::min_element(candidates, {}, rank);
  return static_cast<std::size_t>(best - candidates.begin());
}

std::string describe(const Candidate& candidate) {
  return fmt::format("{}, {}: {} of {} tokens, {:.0f} ms", view_name(candidate.plan.anchor.view),
                     candidate.remembered >= 0 ? "kept" : "new", candidate.evaluated,
                     candidate.plan.tokens.size(), candidate.ms);
}

}  // namespace efimd::prompt
