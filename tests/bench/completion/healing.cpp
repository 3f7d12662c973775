#include "tests/bench/completion/healing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/completion/generate/generate.h"
#include "daemon/completion/generate/healing.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/local_engine.h"
#include "engine/model/model.h"
#include "tests/bench/completion/healing_places.h"
#include "tests/bench/completion/samples.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

namespace efimd::bench {

namespace {

using completion::Generated;
using engine::TokenId;

constexpr int kLineTokensMax = 32;
constexpr int kPages = 48;

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

/// The same file with other weights: matrices as random as those of test::TinyModel.
void write_random_copy(const std::filesystem::path& model, const std::filesystem::path& copy) {
  const engine::GgufFile file = value_of(engine::GgufFile::open(model));
  std::string bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  std::mt19937 random(1);
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.rows == 1) continue;
    const auto deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(tensor.cols)));
    std::normal_distribution<float> draw(0, deviation);
    std::vector<float> values(static_cast<std::size_t>(tensor.rows * tensor.cols));
    std::ranges::generate(values, [&] { return draw(random); });
    const std::string encoded = test::encode_tensor(values, tensor.type);
    bytes.replace(static_cast<std::size_t>(tensor.data - file.bytes().data()), encoded.size(),
                  encoded);
  }
  std::ofstream(copy, std::ios::binary) << bytes;
}

/// A prompt, and how much of its end was typed.
struct Prompt {
  std::vector<TokenId> tokens;
  int typed = 0;
};

/// The model, and one sequence in it.
class HealedModel {
 public:
  HealedModel(const std::filesystem::path& path, int layers, int threads)
      : model_(value_of(engine::Model::open(path))),
        engine_(value_of(engine_over(model_, layers, threads))),
        sequence_(engine_->open_sequence()),
        order_(engine_->tokenizer()) {}

  const engine::Tokenizer& tokenizer() const { return engine_->tokenizer(); }

  /// `split`: EFIM's place for the increment; else PSM's, tokenized with what stands before it.
  Prompt prompt(const HealingPlace& place, bool split) const {
    const engine::FimTokens& fim = tokenizer().fim();
    Prompt made;
    const auto add = [&](const std::string& text) {
      const auto tokens = tokenizer().encode(text, engine::Fragment::kInside);
      made.tokens.insert(made.tokens.end(), tokens.begin(), tokens.end());
      return static_cast<int>(tokens.size());
    };
    if (tokenizer().bos() != engine::kNoToken) made.tokens.push_back(tokenizer().bos());
    made.tokens.push_back(fim.prefix);
    add(split ? place.before : place.before + place.increment);
    made.tokens.push_back(fim.suffix);
    add(place.after);
    made.tokens.push_back(fim.middle);
    if (split) made.typed = std::min(add(place.increment), completion::kHealedTokensMax);
    return made;
  }

  Generated run(const Prompt& prompt, int tokens_max, bool heal) {
    value_of(
        engine_->prefill(sequence_, prompt.tokens, {.logits_rows = heal ? prompt.typed + 1 : 1}));
    completion::Options options;
    options.tokens_max = tokens_max;
    options.time_max_ms = 60000;
    options.confidence = 0;
    completion::GenerationSetting setting{*engine_, sequence_, {}};
    if (heal && prompt.typed > 0) setting.typed.emplace(completion::TypedEnd{order_, prompt.typed});
    completion::StopRules rules(completion::StopRule::kLine, {});
    Generated generated = value_of(completion::generate(setting, options, rules));
    if (heal) check(prompt, generated, rules.text());
    return generated;
  }

  int broken() const { return broken_; }

 private:
  /// 0 layers: all of the model's.
  static Result<std::unique_ptr<engine::LocalEngine>> engine_over(
      const std::shared_ptr<const engine::Model>& model, int layers, int threads) {
    engine::ModelShape shape = model->shape();
    engine::ModelWeights weights = model->weights();
    if (layers > 0 && layers < shape.layers) shape.layers = layers;
    weights.layers.resize(static_cast<std::size_t>(shape.layers));
    engine::CpuOptions options;
    options.threads = threads;
    options.page_count = kPages;
    return engine::LocalEngine::make(
        {model->digest(), shape.layers, shape.vocabulary, shape.context_tokens},
        {model, &model->tokenizer()}, value_of(make_cpu_backend(shape, weights, options)), {});
  }

  /// The constraint: what is spelled now is what was typed, then the new text.
  void check(const Prompt& prompt, const Generated& generated, const std::string& text) {
    std::vector<TokenId> now(prompt.tokens.begin(), prompt.tokens.end() - generated.healed);
    for (const prompt::CoveredToken& token : generated.tokens) now.push_back(token.id);
    if (tokenizer().decode(now) != tokenizer().decode(prompt.tokens) + text) ++broken_;
  }

  std::shared_ptr<const engine::Model> model_;
  std::unique_ptr<engine::Engine> engine_;
  engine::SequenceId sequence_;
  engine::ByteOrder order_;
  int broken_ = 0;
};

std::string trimmed(std::string text) {
  text.resize(text.find_last_not_of(" \t\r") + 1);
  return text;
}

struct Tally {
  int exact_psm = 0, exact_efim = 0, exact_healed = 0;
  int finished = 0;   ///< cursors at which one longer token took the place of the draft's end
  int respelled = 0;  ///< at which typed bytes got other tokens
  int replaced = 0;   ///< draft tokens there, together
  int steps = 0;      ///< until the first new token, the prompt's own step included
  std::vector<double> ms_plain, ms_healed;  ///< of a keystroke until then
};

void compare_lines(HealedModel& model, const HealingPlace& place, Tally& tally) {
  const Prompt split = model.prompt(place, true);
  const auto exact = [&](const Prompt& prompt, bool heal) {
    return trimmed(model.run(prompt, kLineTokensMax, heal).text) == place.rest ? 1 : 0;
  };
  tally.exact_efim += exact(split, false);
  tally.exact_healed += exact(split, true);
  tally.exact_psm += exact(model.prompt(place, false), false);
}

/// One keystroke after the one before it, whose suggestion was generated.
void time_keystroke(HealedModel& model, const HealingPlace& place, Tally& tally) {
  HealingPlace earlier = place;
  while (!earlier.increment.empty()) {
    const bool inside = (static_cast<unsigned char>(earlier.increment.back()) & 0xC0U) == 0x80U;
    earlier.increment.pop_back();
    if (!inside) break;
  }
  const Prompt before = model.prompt(earlier, true);
  const Prompt now = model.prompt(place, true);
  for (const bool heal : {false, true}) {
    model.run(before, 8, heal);
    const auto begin = std::chrono::steady_clock::now();
    const Generated generated = model.run(now, 1, heal);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    (heal ? tally.ms_healed : tally.ms_plain).push_back(took.count());
    if (!heal) continue;
    const auto spelled = static_cast<int>(generated.tokens.size()) - generated.new_tokens;
    tally.finished += generated.healed > 0 && spelled == 0 ? 1 : 0;
    tally.respelled += spelled > 0 ? 1 : 0;
    tally.replaced += generated.healed;
    tally.steps += 1 + spelled;
  }
}

void print(const Tally& tally, int cursors) {
  const auto percent = [&](int count) { return 100.0 * count / cursors; };
  std::printf(
      "| cursors | exact: PSM | EFIM | EFIM + healing | draft stood | word finished | "
      "respelled | tokens replaced | steps | ms | ms without |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  std::printf(
      "| %d | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.2f | %.2f | "
      "%.2f | %.2f |\n",
      cursors, percent(tally.exact_psm), percent(tally.exact_efim), percent(tally.exact_healed),
      percent(cursors - tally.finished - tally.respelled), percent(tally.finished),
      percent(tally.respelled), static_cast<double>(tally.replaced) / cursors,
      static_cast<double>(tally.steps) / cursors, mean_of(tally.ms_healed),
      mean_of(tally.ms_plain));
}

}  // namespace

int measure_healing(const HealingSetup& setup) {
  const test::TempDir folder;
  std::filesystem::path model = setup.model;
  if (setup.random) {
    model = folder / "random.gguf";
    write_random_copy(setup.model, model);
  }
  HealedModel healed(model, setup.layers, setup.threads);
  Tally tally;
  for (const HealingPlace& place :
       random_places(setup.sources, healed.tokenizer(), setup.cursors, setup.seed)) {
    time_keystroke(healed, place, tally);  // first: its prompts begin with the same tokens
    compare_lines(healed, place, tally);
  }
  print(tally, setup.cursors);
  return healed.broken();
}

}  // namespace efimd::bench
