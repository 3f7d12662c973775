#include "engine/decode/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace efimd::engine {
namespace {

// Weights are whole numbers, so that their sums do not depend on order and libraries whose exp()
// differs in the last bit agree. 2^40 leaves room for 2^23 candidates in 64 bits; what is 2^40
// times less likely than the best is never drawn.
constexpr double kWeightUnit = 1099511627776.0;
constexpr double kWeightLogMin = -27.8;  // exp() of it is just below 2^-40

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// The first of the greatest. A block at a time, because only one block is searched for it.
TokenId greedy(std::span<const float> logits) {
  constexpr std::size_t kBlock = 1024;
  float highest = kMinusInfinity;
  std::size_t found = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, logits.size() - begin);
    const float best = greatest(logits.subspan(begin, size));
    if (!(best > highest)) continue;
    highest = best;
    found = begin;
  }
  if (!(highest > kMinusInfinity)) return kNoToken;
  while (logits[found] != highest) ++found;
  return static_cast<TokenId>(found);
}

}  // namespace

float greatest(std::span<const float> logits) {
  // Compilers keep the order of comparisons: one maximum a lane lets them make several at once.
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> best;
  best.fill(kMinusInfinity);
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      best[lane] = logits[i + lane] > best[lane] ? logits[i + lane] : best[lane];
  for (; i < logits.size(); ++i) best[0] = logits[i] > best[0] ? logits[i] : best[0];
  return *std::ranges::max_element(best);
}

Sampler::Sampler(SamplingOptions options) : options_(options), random_(options.seed) {}

TokenId Sampler::choose(std::span<const float> logits) {
  const TokenId best = greedy(logits);
  if (best == kNoToken || is_greedy()) return best;
  const float highest = logits[static_cast<std::size_t>(best)];
  if (std::isinf(highest)) return best;
  collect(logits, highest);
  weigh(highest);
  keep_top_p();
  return draw();
}

TokenId Sampler::choose_among(std::span<const float> logits, std::span<const TokenId> allowed) {
  if (is_greedy()) {
    Candidate best{kMinusInfinity, kNoToken, 0};
    for (const TokenId token : allowed) {
      if (static_cast<std::size_t>(token) >= logits.size()) continue;
      const Candidate candidate{logits[static_cast<std::size_t>(token)], token, 0};
      if (candidate.logit > kMinusInfinity && better(candidate, best)) best = candidate;
    }
    return best.id;
  }
  std::vector<float> masked(logits.size(), kMinusInfinity);
  for (const TokenId token : allowed)
    if (static_cast<std::size_t>(token) < logits.size())
      masked[static_cast<std::size_t>(token)] = logits[static_cast<std::size_t>(token)];
  return choose(masked);
}

/// Fills candidates_ with the top_k best that are not too unlikely to be drawn. With a limit it is
/// a heap of that size, its worst on top: one comparison for most of V.
void Sampler::collect(std::span<const float> logits, float best) {
  candidates_.clear();
  const auto least = static_cast<float>(best + kWeightLogMin * options_.temperature);
  const std::size_t limit =
      options_.top_k > 0 ? static_cast<std::size_t>(options_.top_k) : logits.size();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] < least || !(logits[id] > kMinusInfinity)) continue;
    const Candidate candidate{logits[id], static_cast<TokenId>(id), 0};
    if (candidates_.size() == limit) {
      if (!better(candidate, candidates_.front())) continue;
      std::pop_heap(candidates_.begin(), candidates_.end(), better);
      candidates_.back() = candidate;
    } else {
      candidates_.push_back(candidate);
    }
    if (options_.top_k > 0) std::push_heap(candidates_.begin(), candidates_.end(), better);
  }
  if (options_.top_k > 0) std::sort_heap(candidates_.begin(), candidates_.end(), better);
}

void Sampler::weigh(float best) {
  for (Candidate& candidate : candidates_) {
    const double log_weight = (static_cast<double>(candidate.logit) - best) / options_.temperature;
    candidate.weight = static_cast<std::uint64_t>(std::exp(log_weight) * kWeightUnit);
  }
}

void Sampler::keep_top_p() {
  if (!(options_.top_p < 1.0F)) return;
  double total = 0;
  for (const Candidate& candidate : candidates_) total += static_cast<double>(candidate.weight);
  const double wanted = total * static_cast<double>(options_.top_p);

  // A heap, not a sort: the set is small if the model is sure, and V can be 256,000.
  const auto worse = [](const Candidate& a, const Candidate& b) { return better(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), worse);
  auto rest = candidates_.end();
  double reached = 0;
  do {
    std::pop_heap(candidates_.begin(), rest, worse);
    reached += static_cast<double>((--rest)->weight);
  } while (reached < wanted && rest != candidates_.begin());
  candidates_.erase(candidates_.begin(), rest);
  std::reverse(candidates_.begin(), candidates_.end());
}

TokenId Sampler::draw() {
  std::uint64_t total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  // Uniform in [0, total) by refusing the incomplete last multiple: std::uniform_int_distribution
  // differs by library.
  const std::uint64_t limit = std::mt19937_64::max() - std::mt19937_64::max() % total;
  std::uint64_t drawn = random_();
  while (drawn >= limit) drawn = random_();
  drawn %= total;
  for (const Candidate& candidate : candidates_) {
    if (drawn < candidate.weight) return candidate.id;
    drawn -= candidate.weight;
  }
  return candidates_.back().id;
}

}  // namespace efimd::engine
