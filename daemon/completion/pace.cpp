#include "daemon/completion/pace.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace efimd::completion {

namespace {

using Clock = std::chrono::steady_clock;

/// Touches the weights once, so that reading them from the disk is not measured.
constexpr std::size_t kWarmUpTokens = 4;
constexpr int kMeasuredTokens[] = {1, 4, 16, 64, 256};
/// The better of two, for steps that are over before the machine has woken up.
constexpr int kShortStepTokens = 16;
/// A step that took longer leaves the larger ones unmeasured.
constexpr double kStepMsMax = 250;
/// The increment's part of a window's text, as prompt::Windows::wide() has it.
constexpr int kIncrementShare = 8;

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

constexpr int kFirstSizes[] = {512, 2048, 8192};
constexpr int kNearSizes[] = {96, 192, 384, 768};
/// A machine that does other work, too, measures a part of its speed, and none measures more than it
/// has. So a size stays down to half of the speed that led to it, and a larger one is taken at once.
constexpr double kLeeway = 2;

/// The largest of growing `sizes` that is at most `affordable`, or the smallest.
int largest_of(std::span<const int> sizes, double affordable) {
  const auto above = std::ranges::upper_bound(sizes, affordable);
  return above == sizes.begin() ? sizes.front() : *(above - 1);
}

/// The same, but the `kept` one if that is larger and within the leeway.
int steady_of(std::span<const int> sizes, double affordable, int kept) {
  const bool is_size = std::ranges::find(sizes, kept) != sizes.end();
  const int largest = largest_of(sizes, affordable);
  return is_size && kept <= affordable * kLeeway ? std::max(kept, largest) : largest;
}

double affordable_first(const prompt::StepCosts& costs) {
  constexpr double kColdMs = 2000;
  return prompt_tokens_per_s(costs) * kColdMs / 1000;
}

double affordable_near(const prompt::StepCosts& costs) {
  return prompt_tokens_per_s(costs) * prompt::kFirstAnswerMs / 1000;
}

Result<double> hold_ms(engine::Engine& engine, engine::SequenceId sequence, char start, int count,
                       const std::stop_token& stop) {
  const auto tokens = sample_tokens(engine, start, static_cast<std::size_t>(count));
  const auto begin = Clock::now();
  const auto cost = engine.prefill(sequence, tokens, {.stop = stop});
  if (!cost) return tl::unexpected(cost.error());
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

Result<prompt::StepCosts> measure(engine::Engine& engine, engine::SequenceId sequence,
                                  const std::stop_token& stop) {
  Result<double> ms = hold_ms(engine, sequence, 'a', kWarmUpTokens, stop);
  prompt::StepCosts costs;
  char start = 'b';
  for (const int tokens : kMeasuredTokens) {
    if (ms && (*ms > kStepMsMax || tokens > engine.window_tokens())) break;
    if (ms) ms = hold_ms(engine, sequence, start++, tokens, stop);
    if (ms && tokens <= kShortStepTokens)
      if (const auto again = hold_ms(engine, sequence, start++, tokens, stop))
        ms = std::min(*ms, *again);
    if (!ms) return tl::unexpected(std::move(ms).error());
    costs.points.push_back({tokens, std::max(*ms, 1e-3)});
  }
  // Each step corrects the others if the machine was busy while they were measured.
  const auto measured = costs.points;
  for (const prompt::StepCosts::Point& point : measured) costs.learn(point.tokens, point.ms);
  // So slow that touching the weights is all that was done.
  if (costs.points.empty()) costs.points.push_back({static_cast<int>(kWarmUpTokens), *ms});
  return costs;
}

}  // namespace

Result<prompt::StepCosts> measure_step_costs(engine::Engine& engine, std::stop_token stop) {
  const engine::SequenceId sequence = engine.open_sequence();
  Result<prompt::StepCosts> costs = measure(engine, sequence, stop);
  engine.close_sequence(sequence);
  return costs;
}

double prompt_tokens_per_s(const prompt::StepCosts& costs) {
  if (costs.points.empty()) return 0;
  const prompt::StepCosts::Point& last = costs.points.back();
  return last.tokens * 1000.0 / last.ms;
}

Pace pace_for(const prompt::StepCosts& costs, const Pace& kept) {
  return {steady_of(kFirstSizes, affordable_first(costs), kept.first),
          steady_of(kNearSizes, affordable_near(costs), kept.near)};
}

int window_tokens_by_default(std::string_view device_kind) {
  constexpr int kOfTheCpu = 8192;
  constexpr int kOfAnother = 32768;
  return device_kind == "cpu" ? kOfTheCpu : kOfAnother;
}

int wide_tokens_within(int room_tokens) {
  return room_tokens - room_tokens / (kIncrementShare + 1);
}

int engine_window_for(int text_tokens) {
  constexpr int kGenerated = 1024;
  constexpr int kHeadShare = 6;  // other files take up to 15 %
  return text_tokens + text_tokens / kIncrementShare + text_tokens / kHeadShare + kGenerated;
}

void set_pace(Budgets& budgets, const engine::Engine& engine, std::optional<int> window_tokens,
              const PaceKeeper* keeper) {
  const int most = engine.window_tokens();
  const int ample = std::min(window_tokens_by_default(engine.device_kind()), engine.ample_tokens());
  budgets.wide_tokens_max = std::min(window_tokens.value_or(ample), most);
  const std::optional<Pace> kept = keeper == nullptr ? std::nullopt : keeper->find(engine);
  const Pace pace = pace_for(budgets.costs, kept.value_or(Pace{}));
  if (keeper != nullptr && pace != kept) keeper->keep(engine, pace);
  budgets.prompt_tokens_max = std::min(pace.first, budgets.wide_tokens_max);
  budgets.near_tokens_max = pace.near;
}

}  // namespace efimd::completion
