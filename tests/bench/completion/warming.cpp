// What packed steps and a shared head are worth where idle time makes several files ready.
#include "tests/bench/completion/warming.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "daemon/completion/answer/packed.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/model/model.h"

namespace efimd::bench {
namespace {

using completion::PackedPrompt;
using engine::TokenId;

constexpr int kFiles = 16;
constexpr int kShortest = 24;
constexpr int kLongest = 160;
constexpr int kHeadTokens = 400;
constexpr int kRounds = 7;
constexpr int kStepTokens = 64;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

std::unique_ptr<engine::Engine> open(const std::filesystem::path& path, int threads) {
  auto model = must(engine::Model::open(path));
  constexpr int kTokens = kFiles * (kHeadTokens + kLongest + engine::kPageTokens);
  auto backend = must(make_cpu_backend(model, {.threads = threads,
                                               .isa = std::nullopt,
                                               .page_count = 2 * kTokens / engine::kPageTokens,
                                               .step_tokens_max = kStepTokens,
                                               .weights = engine::WeightsForm::kMapped}));
  return must(make_engine(std::move(model), std::move(backend), {.step_tokens_max = kStepTokens}));
}

/// Makes files ready on an engine, as idle time does. No two calls have a token of text in common.
class Warming {
 public:
  explicit Warming(engine::Engine& engine) : engine_(engine) {}

  /// ms for all files. `one_head`: of kHeadTokens, the same for all; else each has its own, unless
  /// `head_tokens` is 0.
  double ms(bool packed, int head_tokens, bool one_head) {
    std::vector<PackedPrompt> prompts;
    std::vector<TokenId> head = tokens(head_tokens);
    for (int i = 0; i < kFiles; ++i) {
      if (!one_head) head = tokens(head_tokens);
      prompts.push_back({engine_.open_sequence(), head});
      const int size = kShortest + (kLongest - kShortest) * i / (kFiles - 1);
      const std::vector<TokenId> body = tokens(size);
      prompts.back().tokens.insert(prompts.back().tokens.end(), body.begin(), body.end());
    }
    const auto begin = std::chrono::steady_clock::now();
    const completion::Packing packing{[] { return kStepTokens; }, [](int, double) {}};
    const std::size_t together = packed ? prompts.size() : 1;
    for (std::size_t at = 0; at < prompts.size(); at += together)
      if (!evaluate_packed(engine_, std::span(prompts).subspan(at, together), packing, {}))
        throw std::runtime_error("the device failed");
    const auto end = std::chrono::steady_clock::now();
    for (const PackedPrompt& prompt : prompts) {
      if (prompt.state != PackedPrompt::State::kWhole) throw std::runtime_error("no room for KV");
      engine_.close_sequence(prompt.sequence);
    }
    return std::chrono::duration<double, std::milli>(end - begin).count();
  }

 private:
  std::vector<TokenId> tokens(int count) {
    std::uniform_int_distribution<TokenId> any(300, 3000);
    std::vector<TokenId> drawn(static_cast<std::size_t>(count));
    for (TokenId& token : drawn) token = any(random_);
    return drawn;
  }

  engine::Engine& engine_;
  std::mt19937 random_{1};
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

}  // namespace

void print_warming(const std::filesystem::path& model, int threads) {
  const std::unique_ptr<engine::Engine> engine = open(model, threads);
  Warming warming(*engine);
  warming.ms(true, 0, false);
  struct Kind {
    const char* name;
    bool packed;
    int head_tokens;
    bool one_head;
    std::vector<double> ms = {};
  };
  Kind kinds[] = {{"one after the other", false, 0, false},
                  {"packed", true, 0, false},
                  {"with heads of their own, one after the other", false, kHeadTokens, false},
                  {"with one head, packed", true, kHeadTokens, true}};
  for (int round = 0; round < kRounds; ++round)
    for (Kind& kind : kinds)
      kind.ms.push_back(warming.ms(kind.packed, kind.head_tokens, kind.one_head));
  std::printf("%d files of %d to %d tokens, heads of %d, steps of %d, %d rounds in turn\n\n",
              kFiles, kShortest, kLongest, kHeadTokens, kStepTokens, kRounds);
  std::printf("| files | ms | times as fast (lowest-highest) |\n| --- | --- | --- |\n");
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    const Kind& kind = kinds[i];
    std::printf("| %s | %.0f | ", kind.name, median(kind.ms));
    if (i % 2 == 1) {
      std::vector<double> ratios;
      for (std::size_t round = 0; round < kind.ms.size(); ++round)
        ratios.push_back(kinds[i - 1].ms[round] / kind.ms[round]);
      const auto [least, most] = std::ranges::minmax(ratios);
      std::printf("%.2f (%.2f-%.2f)", median(ratios), least, most);
    }
    std::printf(" |\n");
  }
}

}  // namespace efimd::bench
