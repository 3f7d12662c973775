#include "engine/decode/sampler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

using namespace efimd::engine;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// How often each token is chosen in `draws`.
std::map<TokenId, int> counts(const SamplingOptions& options, const std::vector<float>& logits,
                              int draws) {
  Sampler sampler(options);
  std::map<TokenId, int> chosen;
  for (int draw = 0; draw < draws; ++draw) ++chosen[sampler.choose(logits)];
  return chosen;
}

std::set<TokenId> chosen_by(const SamplingOptions& options, const std::vector<float>& logits) {
  std::set<TokenId> ids;
  for (const auto& [id, count] : counts(options, logits, 4000)) ids.insert(id);
  return ids;
}

/// Logits whose softmax is `probabilities`.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double probability : probabilities)
    logits.push_back(static_cast<float>(std::log(probability)));
  return logits;
}

}  // namespace

TEST_CASE("greedy takes the highest logit, and the smaller id of a tie") {
  Sampler sampler({});
  CHECK(sampler.choose(std::vector<float>{1, 3, 2}) == 1);
  CHECK(sampler.choose(std::vector<float>{-4, 3, 3}) == 1);
  CHECK(sampler.choose(std::vector<float>{-0.0F, 0.0F}) == 0);
}

TEST_CASE("greedy finds the first of the highest among very many") {
  std::mt19937 random(5);
  for (const std::size_t size : {1U, 15U, 16U, 1023U, 1024U, 1025U, 5000U, 151936U}) {
    CAPTURE(size);
    std::vector<float> logits(size);
    // Few values, so that most are tied; and some that are none.
    for (float& logit : logits)
      logit = random() % 50 == 0 ? kNaN : -static_cast<float>(random() % 7);
    std::vector<TokenId> allowed;
    TokenId first = kNoToken, first_allowed = kNoToken;
    for (std::size_t id = 0; id < size; ++id) {
      const auto is_better = [&](TokenId than) {
        return !std::isnan(logits[id]) &&
               (than == kNoToken || logits[id] > logits[static_cast<std::size_t>(than)]);
      };
      if (is_better(first)) first = static_cast<TokenId>(id);
      if (random() % 9 != 0) continue;
      if (is_better(first_allowed)) first_allowed = static_cast<TokenId>(id);
      allowed.push_back(static_cast<TokenId>(id));
    }
    CHECK(Sampler({}).choose(logits) == first);
    std::ranges::shuffle(allowed, random);
    CHECK(Sampler({}).choose_among(logits, allowed) == first_allowed);
  }
}

TEST_CASE("NaN counts as minus infinity") {
  CHECK(Sampler({}).choose(std::vector<float>{kNaN, -5, kNaN}) == 1);
  CHECK(chosen_by({.temperature = 1}, {kNaN, 0, kNaN, 0}) == std::set<TokenId>{1, 3});
}

TEST_CASE("where nothing may be chosen, nothing is") {
  for (const float temperature : {0.0F, 1.0F}) {
    Sampler sampler({.temperature = temperature});
    CHECK(sampler.choose(std::vector<float>{-kInfinity, kNaN}) == kNoToken);
    CHECK(sampler.choose({}) == kNoToken);
  }
}

TEST_CASE("an infinite logit wins at any temperature") {
  CHECK(chosen_by({.temperature = 2}, {0, kInfinity, kInfinity}) == std::set<TokenId>{1});
}

TEST_CASE("tokens are drawn as often as the softmax says") {
  const std::vector<double> probabilities = {0.5, 0.3, 0.15, 0.05};
  const int draws = 100000;
  const auto chosen = counts({.temperature = 1, .seed = 7}, logits_of(probabilities), draws);
  for (std::size_t id = 0; id < probabilities.size(); ++id) {
    const double share = chosen.at(static_cast<TokenId>(id)) / static_cast<double>(draws);
    CHECK(share == Approx(probabilities[id]).margin(0.006));  // four deviations
  }
}

TEST_CASE("temperature flattens and sharpens: weights are the probabilities to the power 1/T") {
  const int draws = 100000;
  const auto flat = counts({.temperature = 2}, logits_of({0.8, 0.2}), draws);
  CHECK(flat.at(1) / static_cast<double>(draws) == Approx(1.0 / 3).margin(0.006));
  const auto sharp = counts({.temperature = 0.5F}, logits_of({0.8, 0.2}), draws);
  CHECK(sharp.at(1) / static_cast<double>(draws) == Approx(1.0 / 17).margin(0.004));
}

TEST_CASE("extreme temperatures end in the best token and in any that may be chosen") {
  CHECK(chosen_by({.temperature = 1e-42F}, {5, 7, 7}) == std::set<TokenId>{1, 2});
  CHECK(chosen_by({.temperature = kInfinity}, {-50, 7, -kInfinity}) == std::set<TokenId>{0, 1});
}

TEST_CASE("top-k keeps the k best, the smaller ids of a tie") {
  CHECK(chosen_by({.temperature = 1, .top_k = 2}, {1, 0, 2, 1, 1}) == std::set<TokenId>{0, 2});
  CHECK(chosen_by({.temperature = 9, .top_k = 1}, {1, 0, 2}) == std::set<TokenId>{2});
  CHECK(chosen_by({.temperature = 1, .top_k = 50}, {1, 1}) == std::set<TokenId>{0, 1});
}

TEST_CASE("top-p keeps the smallest set that reaches p, at least one token") {
  const std::vector<float> logits = logits_of({0.1, 0.4, 0.3, 0.2});
  CHECK(chosen_by({.temperature = 1, .top_p = 0.0F}, logits) == std::set<TokenId>{1});
  CHECK(chosen_by({.temperature = 1, .top_p = 0.39F}, logits) == std::set<TokenId>{1});
  CHECK(chosen_by({.temperature = 1, .top_p = 0.41F}, logits) == std::set<TokenId>{1, 2});
  CHECK(chosen_by({.temperature = 1, .top_p = 0.71F}, logits) == std::set<TokenId>{1, 2, 3});
  CHECK(chosen_by({.temperature = 1, .top_p = 0.95F}, logits) == std::set<TokenId>{0, 1, 2, 3});
}

TEST_CASE("top-p shares out what top-k left") {
  // Of {0.4, 0.3} the first is 0.57.
  const std::vector<float> logits = logits_of({0.1, 0.4, 0.3, 0.2});
  CHECK(chosen_by({.temperature = 1, .top_p = 0.56F, .top_k = 2}, logits) == std::set<TokenId>{1});
}

TEST_CASE("a seed gives the same tokens on every machine, another seed others") {
  std::vector<float> logits(1000);
  for (std::size_t id = 0; id < logits.size(); ++id)
    logits[id] = static_cast<float>((id * 7919) % 1000) / 200.0F;
  const auto draw = [&](std::uint64_t seed) {
    Sampler sampler({.temperature = 0.8F, .top_p = 0.95F, .top_k = 200, .seed = seed});
    std::vector<TokenId> tokens;
    for (int count = 0; count < 8; ++count) tokens.push_back(sampler.choose(logits));
    return tokens;
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
  // Pinned, so that another library's distributions or exp() would show.
  CHECK(draw(42) == std::vector<TokenId>{902, 334, 556, 136, 618, 828, 161, 173});
}

TEST_CASE("only allowed tokens are chosen, at any temperature") {
  const std::vector<float> logits = {9, 1, 8, 2, 7};
  const std::vector<TokenId> allowed = {1, 3};
  Sampler greedy({});
  CHECK(greedy.choose_among(logits, allowed) == 3);
  Sampler warm({.temperature = 5, .seed = 1});
  std::set<TokenId> chosen;
  for (int draw = 0; draw < 200; ++draw) chosen.insert(warm.choose_among(logits, allowed));
  CHECK(chosen == std::set<TokenId>{1, 3});
}

TEST_CASE("top-k and top-p share out what the mask leaves") {
  const std::vector<float> logits = {9, 1, 8, 2, 7};
  Sampler sampler({.temperature = 1, .top_p = 0.5F, .top_k = 2, .seed = 1});
  for (int draw = 0; draw < 50; ++draw)
    CHECK(sampler.choose_among(logits, std::vector<TokenId>{1, 3}) == 3);
}

TEST_CASE("where nothing is allowed, nothing is chosen") {
  Sampler sampler({});
  CHECK(sampler.choose_among(std::vector<float>{1, 2}, {}) == kNoToken);
  CHECK(sampler.choose_among(std::vector<float>{1, -kInfinity}, std::vector<TokenId>{1}) ==
        kNoToken);
  CHECK(sampler.choose_among(std::vector<float>{1}, std::vector<TokenId>{7}) == kNoToken);
}
