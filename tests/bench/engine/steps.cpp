// Whole steps through a model file: what they cost by their number of tokens, and tokens/s as a user sees them.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/decode/sampler.h"
#include "engine/model/model.h"
#include "tests/bench/engine/bandwidth.h"
#include "tests/bench/engine/product_peak.h"
#include "tests/bench/engine/tables.h"
#include "tests/bench/engine/timing.h"

namespace efimd::bench {
namespace {

using engine::kPageTokens;
using engine::TokenId;

constexpr int kSteps[] = {1, 2, 4, 8, 16, 64, 256};
constexpr int kPromptTokens = 512;
constexpr int kGeneratedTokens = 64;

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
  bool is_told() {
    const std::lock_guard lock(mutex_);
    return !text_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::string text_;
};

/// A model on the CPU device with one sequence. Panels are made from the start on.
class Runner {
 public:
  Runner(const std::filesystem::path& path, const Form& form, int step_tokens_max)
      : model_(must(engine::Model::open(path))),
        pages_(static_cast<std::size_t>(
            (form.behind + kSteps[std::size(kSteps) - 1]) / kPageTokens + 1)) {
    std::iota(pages_.begin(), pages_.end(), 0);
    backend_ = must(make_cpu_backend(model_, {.threads = form.threads,
                                              .isa = std::nullopt,
                                              .page_count = static_cast<int>(pages_.size()),
                                              .step_tokens_max = step_tokens_max,
                                              .weights = form.weights,
                                              .weights_told = awaited_.listener()}));
  }
  /// Returns once the weights are as they will stay, with what the device says of them.
  std::string await_weights() { return awaited_.wait(); }
  bool are_weights_made() { return awaited_.is_told(); }
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

 private:
  WeightsAwaited awaited_;
  std::shared_ptr<const engine::Model> model_;
  std::vector<engine::PageIndex> pages_;
  std::unique_ptr<engine::Backend> backend_;
};

std::vector<TokenId> some_tokens(int count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 1000);
  return tokens;
}

/// What one round measures, in turn with all others: the machine's speed changes from second to
/// second.
struct Round {
  double steps[std::size(kSteps)];  ///< seconds behind the context
  double one, many;  ///< seconds of 1 and of 64 tokens behind nothing: nearly only matrices
  double reading;    ///< seconds of only reading the matrices' bytes
  double peak;       ///< products of bytes a second, of all threads
};

constexpr int kMany = 64;

Round measure_round(Runner& runner, StepFloor& floor, const Form& form) {
  Round round{};
  for (std::size_t i = 0; i < std::size(kSteps); ++i) {
    const std::vector<TokenId> step = some_tokens(kSteps[i]);
    round.steps[i] = seconds_of([&] { runner.evaluate(step, form.behind); });
  }
  round.reading = seconds_of([&] { floor.read(); });
  round.one = seconds_of([&] { runner.evaluate(some_tokens(1), 0); });
  round.many = seconds_of([&] { runner.evaluate(some_tokens(kMany), 0, false); });
  round.peak = product_peak(form.threads);
  return round;
}

/// The median of what `of` says of each round.
template <class Of>
double median_of(const std::vector<Round>& rounds, const Of& of) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(of(round));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Products of a byte and a byte in a step without logits, for each token.
double products_of_token(const engine::Model& model) {
  double products = 0;
  for (const engine::LayerWeights& layer : model.weights().layers)
    for (const engine::TensorView* matrix :
         {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.gate, &layer.up,
          &layer.down})
      if (matrix->present())
        products += static_cast<double>(matrix->rows) * static_cast<double>(matrix->cols);
  return products;
}

/// Milliseconds of keys, a step of a token each, with a pause in which a core is idle: until panels
/// are made, at most `count`.
std::vector<double> typed_ms(Runner& runner, int count, bool while_made) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  runner.evaluate_prompt(some_tokens(kPromptTokens));
  std::vector<double> keys;
  while (static_cast<int>(keys.size()) < count) {
    std::this_thread::sleep_for(kPause);
    if (while_made && runner.are_weights_made()) break;
    keys.push_back(1e3 * seconds_of([&] { runner.evaluate(some_tokens(1), kPromptTokens); }));
  }
  return keys;
}

/// What a key costs while panels are made, against one of mapped weights, in rounds in turn.
void print_while_made(const std::filesystem::path& path, int threads) {
  constexpr int kRounds = 15;
  constexpr int kKeys = 40;
  std::vector<double> before, meanwhile;
  for (int round = 0; round < kRounds; ++round) {
    // The first keys behind a start take longest, so both have as many of them.
    Runner making(path, {threads, engine::WeightsForm::kPanels, kPromptTokens}, kMany);
    const std::vector<double> keys = typed_ms(making, kKeys, true);
    meanwhile.insert(meanwhile.end(), keys.begin(), keys.end());
    Runner mapped(path, {threads, engine::WeightsForm::kMapped, kPromptTokens}, kMany);
    for (const double key : typed_ms(mapped, static_cast<int>(keys.size()), false))
      before.push_back(key);
  }
  std::printf("\nA key, with pauses, %zu of mapped weights and %zu while panels were made, ms:",
              before.size(), meanwhile.size());
  if (meanwhile.empty()) {
    std::printf(" panels were made before the first key\n");
    return;
  }
  const auto at = [](std::vector<double>& keys, std::size_t percent) {
    std::ranges::sort(keys);
    return keys[std::min(keys.size() * percent / 100, keys.size() - 1)];
  };
  std::printf(" median %.1f and %.1f, p95 %.1f and %.1f\n", at(before, 50), at(meanwhile, 50),
              at(before, 95), at(meanwhile, 95));
}

}  // namespace

void print_steps(const std::vector<std::filesystem::path>& models, const Form& form) {
  constexpr int kRounds = 9;
  std::printf("A step after %d tokens in KV, ms, %d threads, medians of %d rounds in turn\n\n",
              form.behind, form.threads, kRounds);
  std::printf("| model | weights |");
  for (const int tokens : kSteps) std::printf(" %d |", tokens);
  std::printf(
      " GB/s at 1 | matrices of 1 : only reading | 4 : 1 | 8 : 1 | 16 : 1 | matrices of %d : peak "
      "|\n",
      kMany);
  for (std::size_t i = 0; i < std::size(kSteps) + 8; ++i) std::printf("| --- ");
  std::printf("|\n");
  for (const std::filesystem::path& path : models) {
    Runner runner(path, form, kSteps[std::size(kSteps) - 1]);
    const std::string weights = runner.await_weights();
    runner.evaluate_prompt(some_tokens(form.behind));
    StepFloor floor(runner.model(), form.threads);
    measure_round(runner, floor, form);
    std::vector<Round> rounds(kRounds);
    for (Round& round : rounds) round = measure_round(runner, floor, form);

    std::printf("| %s | %s |", path.stem().c_str(), weights.c_str());
    for (std::size_t i = 0; i < std::size(kSteps); ++i)
      std::printf(" %.1f |", median_of(rounds, [&](const Round& r) { return r.steps[i] * 1e3; }));
    const auto bytes = static_cast<double>(runner.model().weight_bytes());
    std::printf(" %.1f |",
                median_of(rounds, [&](const Round& r) { return bytes / r.steps[0] / 1e9; }));
    std::printf(" %.0f %% |",
                median_of(rounds, [](const Round& r) { return 100 * r.reading / r.one; }));
    for (const std::size_t i : {2U, 3U, 4U})
      std::printf(" %.2f |",
                  median_of(rounds, [&](const Round& r) { return r.steps[i] / r.steps[0]; }));
    const double products = kMany * products_of_token(runner.model());
    if (rounds.front().peak > 0)
      std::printf(" %.0f %% |\n", median_of(rounds, [&](const Round& r) {
                    return 100 * products / r.many / r.peak;
                  }));
    else
      std::printf(" - |\n");
    std::fflush(stdout);
  }
}

void print_forms(const std::filesystem::path& path, int threads) {
  constexpr int kRounds = 15;
  constexpr int kStepTokensMax = 64;
  Runner mapped(path, {threads, engine::WeightsForm::kMapped, kPromptTokens}, kStepTokensMax);
  Runner panels(path, {threads, engine::WeightsForm::kPanels, kPromptTokens}, kStepTokensMax);
  std::printf("Steps after %d tokens, %d rounds in turn: %s beside %s\n\n", kPromptTokens, kRounds,
              panels.await_weights().c_str(), mapped.await_weights().c_str());
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
  print_while_made(path, threads);
}

Speed measure_speed(const std::filesystem::path& path, const Form& form) {
  Runner runner(path, form, engine::CpuOptions{}.step_tokens_max);
  std::string weights;
  const double made_s = seconds_of([&] { weights = runner.await_weights(); });
  const std::vector<TokenId> prompt = some_tokens(kPromptTokens);
  const double prompt_s = median_seconds(0, [&] { runner.evaluate_prompt(prompt); });
  TokenId token = engine::Sampler({}).choose(runner.evaluate_prompt(prompt));
  const double generation_s = seconds_of([&] {
    for (int i = 0; i < kGeneratedTokens; ++i)
      token = engine::Sampler({}).choose(runner.evaluate({&token, 1}, kPromptTokens + i));
  });
  return {kPromptTokens / prompt_s, kGeneratedTokens / generation_s, weights, made_s};
}

}  // namespace efimd::bench
