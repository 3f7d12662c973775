// Whole steps through a model file: what they cost by their number of tokens, and tokens/s as a user sees them.
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/decode/sampler.h"
#include "engine/model/model.h"
#include "tests/bench/engine/bandwidth.h"
#include "tests/bench/engine/tables.h"
#include "tests/bench/engine/timing.h"

namespace efimd::bench {
namespace {

using engine::kPageTokens;
using engine::TokenId;

constexpr int kSteps[] = {1, 2, 4, 8, 16, 64, 256};
constexpr int kPromptTokens = 512;
constexpr int kGeneratedTokens = 64;
constexpr int kWindowTokens = 1024;
constexpr double kBudget = 0.5;  // seconds for one number

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

/// Waits until a device says that its weights are as they will stay.
class WeightsAwaited {
 public:
  engine::WeightsTold listener() {
    return [this](const std::string& text) {
      if (text.starts_with("mapped, while")) return;
      const std::lock_guard lock(mutex_);
      text_ = text;
      told_.notify_one();
    };
  }
  std::string wait() {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [&] { return !text_.empty(); });
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::string text_;
};

/// A model on the CPU device with one sequence.
class Runner {
 public:
  Runner(const std::filesystem::path& path, const Form& form, int step_tokens_max)
      : model_(must(engine::Model::open(path))), pages_(kWindowTokens / kPageTokens) {
    std::iota(pages_.begin(), pages_.end(), 0);
    backend_ = must(make_cpu_backend(model_, {.threads = form.threads,
                                              .isa = std::nullopt,
                                              .page_count = kWindowTokens / kPageTokens,
                                              .step_tokens_max = step_tokens_max,
                                              .weights = form.weights,
                                              .weights_told = awaited_.listener()}));
    made_s_ = seconds_of([&] { weights_ = awaited_.wait(); });
  }
  /// Evaluates tokens at `position`; the logits of the last, or none.
  std::span<const float> evaluate(std::span<const TokenId> tokens, int position,
                                  bool logits = true) {
    const engine::StepSequence sequence{0, static_cast<int>(tokens.size()), position, pages_};
    const int last = static_cast<int>(tokens.size()) - 1;
    return must(forward(*backend_, model_->shape().layers,
                        {tokens, {&sequence, 1}, {&last, logits ? 1U : 0U}}));
  }
  std::span<const float> evaluate_prompt(std::span<const TokenId> tokens) {
    std::span<const float> logits;
    const auto step = static_cast<std::size_t>(backend_->step_tokens_max());
    for (std::size_t at = 0; at < tokens.size(); at += step)
      logits = evaluate(tokens.subspan(at, std::min(step, tokens.size() - at)),
                        static_cast<int>(at), at + step >= tokens.size());
    return logits;
  }
  const engine::Model& model() const { return *model_; }
  const std::string& weights() const { return weights_; }  ///< as the device says
  double made_s() const { return made_s_; }                ///< seconds until they stayed so

 private:
  WeightsAwaited awaited_;
  std::string weights_;
  double made_s_ = 0;
  std::shared_ptr<const engine::Model> model_;
  std::vector<engine::PageIndex> pages_;
  std::unique_ptr<engine::Backend> backend_;
};

std::vector<TokenId> some_tokens(int count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 1000);
  return tokens;
}

/// A step of one token and only reading as many bytes, run in turn.
struct AtOneToken {
  double seconds;  ///< of a step, median
  double share;    ///< of reading's speed that its matrices reach, median of the rounds
};

AtOneToken measure_one_token(Runner& runner, int threads) {
  constexpr int kRounds = 15;
  StepFloor floor(runner.model(), threads);
  const std::vector<TokenId> token = some_tokens(1);
  std::vector<double> steps;
  std::vector<double> shares;
  for (int round = 0; round < kRounds; ++round) {
    const double reading = seconds_of([&] { floor.read(); });
    steps.push_back(seconds_of([&] { runner.evaluate(token, kPromptTokens); }));
    shares.push_back(reading / steps.back());
  }
  std::sort(steps.begin(), steps.end());
  std::sort(shares.begin(), shares.end());
  return {steps[kRounds / 2], shares[kRounds / 2]};
}

}  // namespace

void print_steps(const std::vector<std::filesystem::path>& models, const Form& form) {
  std::printf("A step after %d tokens in KV, ms, %d threads\n\n", kPromptTokens, form.threads);
  std::printf("| model | weights |");
  for (const int tokens : kSteps) std::printf(" %d |", tokens);
  std::printf(" GB/s at 1 | of only reading | 4 : 1 | 8 : 1 | 16 : 1 |\n");
  for (std::size_t i = 0; i < std::size(kSteps) + 7; ++i) std::printf("| --- ");
  std::printf("|\n");
  for (const std::filesystem::path& path : models) {
    Runner runner(path, form, kSteps[std::size(kSteps) - 1]);
    runner.evaluate_prompt(some_tokens(kPromptTokens));
    std::printf("| %s | %s |", path.stem().c_str(), runner.weights().c_str());
    const AtOneToken one = measure_one_token(runner, form.threads);
    std::vector<double> seconds;
    for (const int tokens : kSteps) {
      const std::vector<TokenId> step = some_tokens(tokens);
      seconds.push_back(median_seconds(kBudget, [&] { runner.evaluate(step, kPromptTokens); }));
      std::printf(" %.1f |", seconds.back() * 1e3);
      std::fflush(stdout);
    }
    const double rate = static_cast<double>(runner.model().weight_bytes()) / one.seconds / 1e9;
    std::printf(" %.1f | %.0f %% | %.2f | %.2f | %.2f |\n", rate, 100 * one.share,
                seconds[2] / seconds[0], seconds[3] / seconds[0], seconds[4] / seconds[0]);
  }
}

void print_forms(const std::filesystem::path& path, int threads) {
  constexpr int kRounds = 15;
  constexpr int kStepTokensMax = 64;
  Runner mapped(path, {threads, engine::WeightsForm::kMapped}, kStepTokensMax);
  Runner panels(path, {threads, engine::WeightsForm::kPanels}, kStepTokensMax);
  std::printf("Steps after %d tokens, %d rounds in turn: %s beside %s\n\n", kPromptTokens, kRounds,
              panels.weights().c_str(), mapped.weights().c_str());
  std::printf("| tokens | mapped, ms | panels, ms | times as fast (quartiles) |\n");
  std::printf("| --- | --- | --- | --- |\n");
  for (Runner* runner : {&mapped, &panels}) runner->evaluate_prompt(some_tokens(kPromptTokens));
  for (const int tokens : kSteps) {
    if (tokens > kStepTokensMax) break;
    const std::vector<TokenId> step = some_tokens(tokens);
    std::vector<double> of_mapped, of_panels, ratios;
    for (int round = 0; round < kRounds; ++round) {
      of_mapped.push_back(seconds_of([&] { mapped.evaluate(step, kPromptTokens); }));
      of_panels.push_back(seconds_of([&] { panels.evaluate(step, kPromptTokens); }));
      ratios.push_back(of_mapped.back() / of_panels.back());
    }
    for (std::vector<double>* each : {&of_mapped, &of_panels, &ratios})
      std::sort(each->begin(), each->end());
    std::printf("| %d | %.1f | %.1f | %.2f (%.2f, %.2f) |\n", tokens, of_mapped[kRounds / 2] * 1e3,
                of_panels[kRounds / 2] * 1e3, ratios[kRounds / 2], ratios[kRounds / 4],
                ratios[3 * kRounds / 4]);
  }
}

Speed measure_speed(const std::filesystem::path& path, const Form& form) {
  Runner runner(path, form, engine::CpuOptions{}.step_tokens_max);
  const std::vector<TokenId> prompt = some_tokens(kPromptTokens);
  const double prompt_s = median_seconds(0, [&] { runner.evaluate_prompt(prompt); });
  TokenId token = engine::Sampler({}).choose(runner.evaluate_prompt(prompt));
  const double generation_s = seconds_of([&] {
    for (int i = 0; i < kGeneratedTokens; ++i)
      token = engine::Sampler({}).choose(runner.evaluate({&token, 1}, kPromptTokens + i));
  });
  return {kPromptTokens / prompt_s, kGeneratedTokens / generation_s, runner.weights(),
          runner.made_s()};
}

}  // namespace efimd::bench
