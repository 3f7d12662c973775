#include "tests/bench/completion/baseline.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/scripted_engine.h"

using namespace efimd;
using namespace efimd::bench;

namespace {

constexpr Treatment kPlainPrefix{Treatment::Format::kPlainFim, Treatment::Reuse::kPrefix};
constexpr Treatment kPlainNone{Treatment::Format::kPlainFim, Treatment::Reuse::kNone};
constexpr Treatment kEfimPrefix{Treatment::Format::kEfim, Treatment::Reuse::kPrefix};

/// A baseline over a scripted engine, and the prompt that it was shown last.
struct Measured {
  explicit Measured(const Baseline::Setup& setup) {
    script->continuation = [this](const test::ScriptedPrompt& prompt) {
      shown = prompt;
      return std::string("urn a;");
    };
    auto made = Baseline::make(std::make_unique<test::ScriptedEngine>(script), setup);
    REQUIRE(made);
    baseline = std::move(*made);
  }
  completion::Receipt ask(const text::Document& document, std::size_t cursor,
                          const std::string& uri = "file:///a", int tokens_max = 8) {
    completion::Request request;
    request.document = {1, uri};
    request.snapshot = document.snapshot();
    request.cursor = cursor;
    request.options.tokens_max = tokens_max;
    request.arrived = std::chrono::steady_clock::now();
    auto receipt = baseline->ask(request);
    REQUIRE(receipt);
    CHECK(receipt->evaluated_tokens + receipt->reused_tokens == receipt->prompt_tokens);
    CHECK(receipt->queue_ms <= receipt->first_token_ms);
    CHECK(receipt->first_token_ms <= receipt->total_ms);
    return *receipt;
  }

  std::shared_ptr<test::EngineScript> script = std::make_shared<test::EngineScript>();
  test::ScriptedPrompt shown;
  std::unique_ptr<Baseline> baseline;
};

Baseline::Setup setup_of(Treatment treatment) {
  return {.treatment = treatment, .prompt_tokens_max = 400};
}

/// Three characters typed at the end of the first line: tokens evaluated for the last, and reused.
int evaluated_when_typed(Treatment treatment, int& reused) {
  Measured measured(setup_of(treatment));
  text::Document document("int abcdefghijklmnop;\n\n}\n");
  completion::Receipt receipt = measured.ask(document, 22);
  std::size_t cursor = 22;
  for (const char* key : {"x", "y", "z"}) {
    REQUIRE(document.replace(cursor, cursor, key));
    receipt = measured.ask(document, ++cursor);
  }
  reused = receipt.reused_tokens;
  return receipt.evaluated_tokens;
}

}  // namespace

TEST_CASE("plain FIM shows the text up to the cursor as before, and nothing behind the middle") {
  Measured measured(setup_of(kPlainPrefix));
  const text::Document document("int a;\n  ret\n}\n");
  const completion::Receipt receipt = measured.ask(document, 12);
  CHECK(measured.shown.before == "int a;\n  ret");
  CHECK(measured.shown.increment.empty());
  CHECK(measured.shown.after == "\n}\n");
  CHECK(receipt.prompt_tokens == static_cast<int>(measured.shown.tokens.size()));
}

TEST_CASE(
    "EFIM's layout evaluates the key, a prefix's reuse what stands after it, none the whole") {
  int reused = 0;
  const int efim = evaluated_when_typed(kEfimPrefix, reused);
  CHECK(efim == 1);
  const int prefix = evaluated_when_typed(kPlainPrefix, reused);
  CHECK(prefix > efim);
  CHECK(reused > 0);
  const int none = evaluated_when_typed(kPlainNone, reused);
  CHECK(none > prefix);
  CHECK(reused == 0);
}

TEST_CASE("an answer ends at the model's end, unless it is to have as many tokens as were asked") {
  const text::Document document("int a;\n  ret\n}\n");
  Measured ends(setup_of(kPlainPrefix));
  const auto said = ends.baseline->engine().tokenizer().encode("urn a;", engine::Fragment::kInside);
  CHECK(ends.ask(document, 12, "file:///a", 64).generated_tokens == static_cast<int>(said.size()));
  CHECK(ends.ask(document, 12, "file:///a", 2).generated_tokens == 2);
  Baseline::Setup setup = setup_of(kPlainPrefix);
  setup.past_end = true;
  CHECK(Measured(setup).ask(document, 12, "file:///a", 64).generated_tokens == 64);
}

TEST_CASE("where KV has no room the document that was used longest ago goes") {
  Measured measured(setup_of(kPlainPrefix));
  measured.script->page_count = 2;  // each prompt here takes one
  const text::Document document("int a;\n  ret\n}\n");
  measured.ask(document, 12, "file:///a", 2);
  measured.ask(document, 12, "file:///b", 2);
  measured.ask(document, 12, "file:///c", 2);
  CHECK(measured.script->sequences_open == 2);
  CHECK(measured.ask(document, 12, "file:///b", 2).evaluated_tokens <= 1);
}

TEST_CASE("a prompt that does not fit alone is refused, and so is a model that cannot fill in") {
  Measured measured(setup_of(kPlainPrefix));
  measured.script->page_count = 0;
  const text::Document document("int a;\n");
  completion::Request request;
  request.snapshot = document.snapshot();
  request.options.tokens_max = 2;
  const auto receipt = measured.baseline->ask(request);
  REQUIRE_FALSE(receipt);
  CHECK(receipt.error().fault == Fault::kWindowFull);
  const auto script = std::make_shared<test::EngineScript>();
  script->tokenizer.order = engine::FimOrder::kNone;
  const auto made = Baseline::make(std::make_unique<test::ScriptedEngine>(script), {});
  REQUIRE_FALSE(made);
  CHECK(made.error().fault == Fault::kUnsupported);
}

TEST_CASE("without a window that was set, what the measured speed allows is the window") {
  Measured measured({.treatment = kPlainPrefix, .cold_prompt_ms = 1 << 20});
  CHECK(measured.baseline->window_tokens() == measured.script->window_tokens);
  CHECK(measured.script->sequences_open == 0);
}
