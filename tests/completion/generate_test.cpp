#include "daemon/completion/generate/generate.h"

#include <catch2/catch.hpp>

#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

/// An engine that holds a prompt, and what generate() runs on.
struct Bench {
  explicit Bench(std::string text) : engine(test::says(std::move(text))) {
    const auto prompt = tokens("int a = ");
    REQUIRE(engine.prefill(sequence, prompt, {}));
  }
  std::vector<engine::TokenId> tokens(std::string_view text) const {
    return engine.tokenizer().encode(text, engine::Fragment::kInside);
  }
  Generated run(const Options& options, StopRule rule = StopRule::kNone) {
    StopRules rules(rule, {"int a = ", ""});
    Result<Generated> generated = generate(setting, options, rules);
    REQUIRE(generated);
    return *generated;
  }

  test::ScriptedEngine engine;
  engine::SequenceId sequence = engine.open_sequence();
  GenerationSetting setting{engine, sequence, {}};
};

}  // namespace

TEST_CASE("generation ends with the model, and its tokens cover its text") {
  Bench bench("f(x);\n");
  const Generated generated = bench.run({});
  CHECK(generated.end == End::kModel);
  CHECK(generated.text == "f(x);\n");
  std::size_t bytes = 0;
  for (const prompt::CoveredToken& token : generated.tokens) {
    CHECK(token.generated);
    bytes += token.bytes;
  }
  CHECK(bytes == 6);
}

TEST_CASE("all generated tokens but an end are in KV, the last one only when more was wanted") {
  Bench bench("f(x);");
  const std::size_t prompt = bench.engine.held(bench.sequence).size();
  const Generated whole = bench.run({});
  CHECK(bench.engine.held(bench.sequence).size() == prompt + whole.tokens.size());
  Bench cut("f(x);");
  Options options;
  options.tokens_max = 2;
  CHECK(cut.run(options).tokens.size() == 2);
  CHECK(cut.engine.held(cut.sequence).size() == prompt + 1);
}

TEST_CASE("a stop rule ends it, and the token that overshoots is remembered") {
  Bench bench("f(x);\nmore();");
  const Generated generated = bench.run({}, StopRule::kLine);
  CHECK(generated.end == End::kRule);
  CHECK(generated.text == "f(x);");
  std::string all;
  for (const auto& token : generated.tokens) all += bench.engine.tokenizer().bytes(token.id);
  CHECK(all == "f(x);\n");
}

TEST_CASE("the time budget ends it with what is there") {
  Bench bench("1 + 2 + 3 + 4 + 5;");
  std::chrono::steady_clock::time_point now{};
  bench.setting.now = [&] { return now += std::chrono::milliseconds(10); };
  Options options;
  options.time_max_ms = 75;
  const Generated generated = bench.run(options);
  CHECK(generated.end == End::kTime);
  CHECK(generated.tokens.size() > 2);
  CHECK(generated.text.starts_with("1 + 2"));
  CHECK(generated.text.size() < 10);
}

TEST_CASE("however short the time, one token is shown") {
  Bench bench("1 + 2;");
  Options options;
  options.time_max_ms = 0;
  CHECK(bench.run(options).tokens.size() == 1);
}

TEST_CASE("a stop that has fired generates nothing") {
  Bench bench("1 + 2;");
  std::stop_source stop;
  stop.request_stop();
  bench.setting.stop = stop.get_token();
  const Generated generated = bench.run({});
  CHECK(generated.end == End::kStopped);
  CHECK(generated.tokens.empty());
}

TEST_CASE("room is asked for before generation ends for the lack of it") {
  auto script = test::says("1 + 2 + 3;");
  script->page_count = 1;
  test::ScriptedEngine engine(script);
  const engine::SequenceId other = engine.open_sequence();
  const engine::SequenceId sequence = engine.open_sequence();
  const std::vector<engine::TokenId> prompt(engine::kPageTokens, 'a');
  REQUIRE(engine.prefill(sequence, prompt, {}));
  int asked = 0;
  GenerationSetting setting{engine, sequence, {}};
  setting.make_room = [&] {
    engine.close_sequence(other);
    script->page_count = 2;
    return ++asked == 1;
  };
  StopRules rules(StopRule::kNone, {});
  const auto generated = generate(setting, {}, rules);
  REQUIRE(generated);
  CHECK(asked == 1);
  CHECK(generated->text == "1 + 2 + 3;");
}

TEST_CASE("the same seed chooses the same tokens") {
  Options options;
  options.temperature = 4.0F;
  options.seed = 7;
  options.tokens_max = 8;
  Bench first("abc"), second("abc");
  CHECK(first.run(options).text == second.run(options).text);
}
