#include "daemon/completion/generate/judging.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "daemon/completion/generate/healing.h"
#include "daemon/completion/generate/token_probability.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/model/model.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::completion;
using engine::TokenId;

namespace {

std::unique_ptr<engine::Engine> tiny_engine(const std::string& folder) {
  const auto model = engine::Model::open(test::write_tiny_model({}, folder)).value();
  engine::CpuOptions options;
  options.threads = 1;
  options.isa = engine::Isa::kScalar;
  options.page_count = 16;
  return engine::make_engine(model, engine::make_cpu_backend(model, options).value(), {}).value();
}

/// A real engine over a model with random weights, and a sequence in it.
struct JudgedPrompt {
  std::vector<TokenId> tokens(std::string_view text) const {
    return engine->tokenizer().encode(text, engine::Fragment::kInside);
  }
  /// The judgement of `candidates` after `typed` and a draft, of which `drafted` tokens are evaluated.
  std::vector<std::vector<JudgedToken>> judge(std::string_view typed, std::string_view draft,
                                              std::size_t drafted,
                                              const std::vector<std::string>& candidates,
                                              int healed = 0) {
    std::vector<TokenId> held = tokens(typed);
    const std::vector<TokenId> more = tokens(draft);
    REQUIRE(more.size() >= drafted);
    held.insert(held.end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(drafted));
    const int rows = 1 + healed + static_cast<int>(drafted);
    REQUIRE(engine->prefill(sequence, held, {.logits_rows = rows}));
    GenerationSetting setting{*engine, sequence, {}};
    setting.drafted = static_cast<int>(drafted);
    if (healed > 0) setting.typed.emplace(TypedEnd{order, healed});
    setting.candidates = candidates;
    return judge_candidates(setting, sequence);
  }
  /// The logits after these tokens, from a step of its own.
  std::vector<float> logits_after(const std::vector<TokenId>& all) {
    const engine::SequenceId other = engine->open_sequence();
    REQUIRE(engine->prefill(other, all, {}));
    const std::span<const float> row = engine->logits(other);
    std::vector<float> copy(row.begin(), row.end());
    engine->close_sequence(other);
    return copy;
  }
  /// Of the text's tokens, each after those before it.
  std::vector<double> alone(std::string_view prompt, std::string_view text) {
    std::vector<TokenId> all = tokens(prompt);
    std::vector<double> found;
    for (const TokenId token : tokens(text)) {
      found.push_back(probability_of(token, logits_after(all)));
      all.push_back(token);
    }
    return found;
  }

  test::TempDir folder;
  std::unique_ptr<engine::Engine> engine = tiny_engine(folder.path());
  engine::ByteOrder order{engine->tokenizer()};
  engine::SequenceId sequence = engine->open_sequence();
};

constexpr char kLoop[] = "for (int i = 0; i < ";

}  // namespace

TEST_CASE("A-12: candidates are judged in one step, up to where they leave the draft",
          "[one-thread]") {
  JudgedPrompt prompt;
  const std::vector<std::string> candidates = {"size; ++i) {", "size; i++) {", "name.size()", ""};
  for (const std::size_t drafted : {std::size_t{0}, std::size_t{2}, std::size_t{4}}) {
    const auto judged = prompt.judge(kLoop, candidates[0], drafted, candidates);
    REQUIRE(judged.size() == candidates.size());
    CHECK(judged[0].size() == drafted + 1);
    CHECK(judged[3].empty());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto tokens = prompt.tokens(candidates[i]), draft = prompt.tokens(candidates[0]);
      const std::vector<double> chances = prompt.alone(kLoop, candidates[i]);
      std::size_t end = 0;
      for (std::size_t at = 0; at < judged[i].size(); ++at) {
        end += prompt.engine->tokenizer().bytes(tokens[at]).size();
        CHECK(judged[i][at].end == end);
        CHECK(judged[i][at].probability == Approx(chances[at]).epsilon(1e-4));
        if (at > 0) CHECK(tokens[at - 1] == draft[at - 1]);
      }
    }
  }
}

TEST_CASE("A-12: where the typed end may be healed, a candidate is spelled with it",
          "[one-thread]") {
  JudgedPrompt prompt;
  const std::string typed = "retu", text = "rn name;";
  const std::vector<TokenId> whole = prompt.tokens(typed + text);
  const auto healed = static_cast<int>(prompt.tokens(typed).size());
  REQUIRE(healed <= kHealedTokensMax);
  REQUIRE(prompt.engine->tokenizer().bytes(whole.front()).size() > typed.size());
  // Behind other text, so that there are logits before the typed end.
  const auto judged = prompt.judge(std::string(kLoop) + typed, "", 0, {text}, healed);
  REQUIRE(judged.size() == 1);
  REQUIRE(judged[0].size() == 1);
  const std::string_view first = prompt.engine->tokenizer().bytes(whole.front());
  CHECK(judged[0][0].end == first.size() - typed.size());
  CHECK(judged[0][0].probability ==
        Approx(probability_among(whole.front(), prompt.logits_after(prompt.tokens(kLoop)),
                                 prompt.order.fitting(typed)))
            .epsilon(1e-4));
}

TEST_CASE("A-12: a cursor within a code point leaves candidates without the model's word",
          "[one-thread]") {
  JudgedPrompt prompt;
  const engine::Tokenizer& tokenizer = prompt.engine->tokenizer();
  TokenId half = 0;
  while (half < tokenizer.size() && tokenizer.bytes(half) != "\xC3") ++half;
  REQUIRE(half < tokenizer.size());
  std::vector<TokenId> held = prompt.tokens(kLoop);
  held.push_back(half);
  REQUIRE(prompt.engine->prefill(prompt.sequence, held, {.logits_rows = 2}));
  const std::vector<std::string> candidates = {"name", "\xA4hler"};
  GenerationSetting setting{*prompt.engine, prompt.sequence, {}};
  setting.typed.emplace(TypedEnd{prompt.order, 1});
  setting.candidates = candidates;
  const auto judged = judge_candidates(setting, prompt.sequence);
  REQUIRE(judged.size() == 2);
  CHECK(judged[0].empty());        // no token spells this after half a code point
  CHECK_FALSE(judged[1].empty());  // this one ends it
}
