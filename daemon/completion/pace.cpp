#include "daemon/completion/pace.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace efimd::completion {

namespace {

constexpr std::size_t kWarmUpTokens = 8;
constexpr std::size_t kMeasuredTokens = 64;
/// A warm-up slower than this has measured enough: the measurement itself would take seconds.
constexpr double kWarmUpSecondsMax = 0.25;

/// Tokens of some code. Different `start`s make different first tokens, so that no KV is reused.
std::vector<engine::TokenId> sample_tokens(const engine::Engine& engine, char start,
                                           std::size_t count) {
  count = std::min(count, static_cast<std::size_t>(std::max(engine.window_tokens(), 1)));
  std::string text(1, start);
  for (std::size_t i = 0; i < count; ++i) text += " = f" + std::to_string(i) + "(x);\n";
  auto tokens = engine.tokenizer().encode(text, engine::Fragment::kInside);
  tokens.resize(std::min(tokens.size(), count));
  return tokens;
}

Result<double> tokens_per_s(engine::Engine& engine, engine::SequenceId sequence,
                            const std::vector<engine::TokenId>& tokens, std::stop_token stop) {
  const auto begin = std::chrono::steady_clock::now();
  const auto cost = engine.hold(sequence, tokens, {.stop = std::move(stop)});
  if (!cost) return tl::unexpected(cost.error());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(std::max(cost->evaluated, 1)) / std::max(took.count(), 1e-6);
}

}  // namespace

Result<double> measure_prompt_speed(engine::Engine& engine, std::stop_token stop) {
  const engine::SequenceId sequence = engine.open_sequence();
  const auto warm_up = sample_tokens(engine, 'a', kWarmUpTokens);
  Result<double> speed = tokens_per_s(engine, sequence, warm_up, stop);
  if (speed && static_cast<double>(warm_up.size()) < *speed * kWarmUpSecondsMax)
    speed = tokens_per_s(engine, sequence, sample_tokens(engine, 'b', kMeasuredTokens), stop);
  engine.close_sequence(sequence);
  return speed;
}

int prompt_tokens_for(double tokens_per_s, int cold_prompt_ms, int window_tokens) {
  constexpr double kStep = 64;
  constexpr int kTokensMin = 256;
  const double affordable = tokens_per_s * cold_prompt_ms / 1000.0;
  const double capped = std::min(affordable, static_cast<double>(window_tokens));
  const int whole = static_cast<int>(capped / kStep) * static_cast<int>(kStep);
  return std::min(std::max(whole, kTokensMin), window_tokens);
}

}  // namespace efimd::completion
