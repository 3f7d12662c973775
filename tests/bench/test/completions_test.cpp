#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>

#include "engine/model/model.h"
#include "tests/bench/completion/keeping.h"
#include "tests/bench/completion/replay.h"
#include "tests/bench/completion/rounds.h"
#include "tests/bench/completion/typing.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::bench;

// What is compared is what the real engine counts, with the small model and a trace of two files.

namespace {

constexpr Treatment kPlainPrefix{Treatment::Format::kPlainFim, Treatment::Reuse::kPrefix};
constexpr Treatment kPlainNone{Treatment::Format::kPlainFim, Treatment::Reuse::kNone};
constexpr Treatment kEfimPrefix{Treatment::Format::kEfim, Treatment::Reuse::kPrefix};

std::string file_text(const std::string& path) {
  std::ifstream file(EFIMD_SOURCE_DIR "/" + path, std::ios::binary);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Nothing is configured but the model, by the environment, which services read when they are opened.
const int kNamed = setenv("EFIMD_MODEL", EFIMD_SMALL_MODEL, 1);

std::unique_ptr<BenchService> bench_of(int prompt_tokens_max) {
  auto bench = BenchService::open(service::Paths{}, prompt_tokens_max);
  REQUIRE(bench);
  return std::move(*bench);
}

std::unique_ptr<Baseline> baseline_of(const Baseline::Setup& setup) {
  auto opened = open_baseline(service::Paths{}, setup);
  REQUIRE(opened);
  CHECK(opened->description.find("efim-boot") == 0);
  return std::move(opened->baseline);
}

struct Sums {
  int prompt = 0, evaluated = 0;
};

Sums sums_of_trace(Treatment treatment) {
  const auto trace = parse_trace(file_text("tests/bench/small_trace.jsonl"));
  REQUIRE(trace);
  const ReplayOptions options{.tokens_max = 2};
  const auto answers =
      treatment.is_usual()
          ? replay(*bench_of(400), *trace, options)
          : replay(*baseline_of({.treatment = treatment, .prompt_tokens_max = 400}), *trace,
                   options);
  REQUIRE(answers);
  REQUIRE(answers->size() > 40);
  Sums sums;
  for (const Answered& answer : *answers) {
    const completion::Receipt& receipt = answer.receipt;
    CHECK(receipt.evaluated_tokens + receipt.reused_tokens == receipt.prompt_tokens);
    if (treatment.reuse == Treatment::Reuse::kNone) CHECK(receipt.reused_tokens == 0);
    sums.prompt += receipt.prompt_tokens;
    sums.evaluated += receipt.evaluated_tokens;
  }
  return sums;
}

}  // namespace

TEST_CASE("replayed with EFIM a trace costs a small part of what plain FIM evaluates") {
  const Sums efim = sums_of_trace({});
  const Sums prefix = sums_of_trace(kPlainPrefix);
  const Sums none = sums_of_trace(kPlainNone);
  CAPTURE(efim.evaluated, prefix.evaluated, none.evaluated);
  CHECK(efim.evaluated * 4 < prefix.evaluated);
  CHECK(prefix.evaluated < none.evaluated);
  CHECK(none.evaluated == none.prompt);
}

TEST_CASE("rounds of typing: the same prompts, and the less to evaluate the more is used again") {
  const auto model = engine::Model::open(EFIMD_SMALL_MODEL);
  REQUIRE(model);
  const RoundsWindow window = RoundsWindow::of(200, 3, (*model)->shape().context_tokens);
  const std::vector<std::string> sources = {file_text("base/utf8.cpp"),
                                            file_text("daemon/text/document.cpp")};
  const auto users = rounds_users(sources, 3, 3, window, (*model)->tokenizer());
  REQUIRE(users);
  std::vector<RoundsResult> results;
  for (const Treatment treatment : {kEfimPrefix, kPlainPrefix, kPlainNone}) {
    const auto baseline = baseline_of(
        {.treatment = treatment, .prompt_tokens_max = window.prompt_tokens_max, .past_end = true});
    Rounds rounds(*baseline, *users);
    for (int round = 0; round < 3; ++round) REQUIRE(rounds.run());
    results.push_back(rounds.result());
    const RoundsResult& result = results.back();
    CHECK(result.latency.count() == 9);
    CHECK(result.generated.sum() == 9 * kRoundTokens);
    CHECK(result.prompt.mean() == Approx(200).margin(60));
  }
  CHECK(results[0].evaluated.sum() < results[1].evaluated.sum());
  CHECK(results[1].evaluated.sum() < results[2].evaluated.sum());
  CHECK(results[2].reused.sum() == 0);
}

TEST_CASE("rounds of more text than there is are refused with what to do") {
  const auto model = engine::Model::open(EFIMD_SMALL_MODEL);
  REQUIRE(model);
  const auto users =
      rounds_users({"short\n"}, 2, 5, RoundsWindow::of(200, 5, 1024), (*model)->tokenizer());
  REQUIRE_FALSE(users);
  CHECK_THAT(users.error().message(), Catch::Contains("name more files"));
}

TEST_CASE("typing a part of a file counts each key once, and what suggestions save") {
  const auto bench = bench_of(400);
  const Exercise exercise = exercise_of(file_text("tests/bench/completion/typist.cpp"), 6, 1);
  TypingResult result;
  REQUIRE(type_exercise(*bench, "typist.cpp", exercise, {.speed = 40}, result));
  CHECK(result.keys_by_hand == keys_of(exercise.typed));
  // Accepting is one key, for what would have been three or more.
  CHECK(result.keys + 2 * result.accepted <= result.keys_by_hand);
  CHECK((result.accepted > 0 || result.keys == result.keys_by_hand));
  CHECK(result.answered <= result.keys);
  CHECK(result.suggested <= result.answered);
  CHECK(result.typed_through <= result.answered);
  CHECK(result.suggestion_ms.count() == result.suggested);
  const double saved = static_cast<double>(result.keys_by_hand - result.keys);
  CHECK(result.saved_share() == Approx(saved / static_cast<double>(result.keys_by_hand)));
}

TEST_CASE("the second life of a store finds what the first one kept") {
  const test::TempDir folder;
  const auto kept = run_keeping({.config = {},
                                 .model = EFIMD_SMALL_MODEL,
                                 .folder = folder.path() / "kv",
                                 .text = file_text("daemon/text/document.cpp"),
                                 .keys = 2});
  REQUIRE(kept);
  CHECK(kept->cold.restored_tokens == 0);
  CHECK(kept->warm.restored_tokens > kept->warm.prompt_tokens / 2);
  CHECK(kept->warm.evaluated_tokens < 40);
}
