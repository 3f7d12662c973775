#include "daemon/completion/generate/healing.h"

#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>

#include "daemon/completion/generate/generate.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/model/model.h"
#include "tests/completion/harness.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::completion;
using engine::TokenId;

namespace {

/// A model that would have written `line` at the cursor's line, whatever was typed of it.
std::shared_ptr<test::EngineScript> would_write(std::string line) {
  auto script = std::make_shared<test::EngineScript>();
  script->fragment_trained = false;
  script->continues_everywhere = true;
  script->continuation = [line = std::move(line)](const test::ScriptedPrompt& prompt) {
    const bool on_it = line.starts_with(prompt.increment);
    return on_it ? line.substr(prompt.increment.size()) : std::string();
  };
  return script;
}

/// What is left of a generation after a typed end.
struct Healed {
  Generated generated;
  std::string text;  ///< what the sequence holds and the last token
  int evaluated = 0;
};

Healed heal(const std::string& would, const std::string& typed, Options options = {}) {
  auto script = would_write(would);
  test::ScriptedEngine engine(script);
  const engine::SequenceId sequence = engine.open_sequence();
  std::vector<TokenId> prompt = {engine.tokenizer().fim().middle};
  std::vector<prompt::CoveredToken> increment;
  for (const TokenId id : engine.tokenizer().encode(typed, engine::Fragment::kInside)) {
    prompt.push_back(id);
    increment.push_back({id, engine.tokenizer().bytes(id).size(), false});
  }
  const int tail = typed_tail(increment, engine.tokenizer());
  REQUIRE(engine.prefill(sequence, prompt, {.logits_rows = tail + 1}));
  const int evaluated = script->evaluated;
  const engine::ByteOrder order(engine.tokenizer());
  GenerationSetting setting{engine, sequence, {}};
  setting.typed.emplace(TypedEnd{order, tail});
  StopRules rules(StopRule::kNone, {typed, ""});
  const Result<Generated> generated = generate(setting, options, rules);
  REQUIRE(generated);
  Healed healed{*generated, {}, script->evaluated - evaluated};
  for (const TokenId token : engine.held(sequence)) healed.text += engine.tokenizer().bytes(token);
  return healed;
}

}  // namespace

TEST_CASE("a broken word is finished with the token that the model would have used") {
  const Healed healed = heal("return name;", "retu");  // typed as "re", "t", "u"
  CHECK(healed.generated.text == "rn name;");
  CHECK(healed.generated.healed == 3);
  CHECK(healed.generated.tokens.front().bytes == std::string("return ").size());
  CHECK(healed.text == "return name;");
}

TEST_CASE("what the model would have typed the same stands, and costs no step") {
  const Healed healed = heal("return name;", "return name");
  CHECK(healed.generated.healed == 0);
  CHECK(healed.generated.text == ";");
  CHECK(healed.evaluated == 1);  // ";", to learn that the line ends
}

TEST_CASE("healing begins at the first token that does not stand") {
  const Healed healed = heal("return name;", "return na");
  CHECK(healed.generated.healed == 2);
  CHECK(healed.generated.text == "me;");
  CHECK(healed.text == "return name;");
}

TEST_CASE("budgets count what goes on behind the cursor") {
  Options options;
  options.tokens_max = 1;
  const Healed healed = heal("return name;", "retu", options);
  CHECK(healed.generated.text == "rn ");
  CHECK(healed.generated.new_tokens == 1);
  options.tokens_max = 0;
  CHECK(heal("return name;", "retu", options).generated.tokens.empty());
}

TEST_CASE("a way to spell the typed end that takes too many tokens gives way to the draft") {
  // Off its line the model has no opinion and takes bytes: "nullptr" would be seven tokens.
  const Healed healed = heal("something else", "nullptr");
  CHECK(healed.generated.healed == 0);
  CHECK(healed.generated.tokens.empty());
  CHECK(healed.text == "nullptr");
  CHECK(healed.generated.end == End::kModel);
}

TEST_CASE("only typed tokens are healed, at most three, and none that covers foreign bytes") {
  const test::ScriptedTokenizer tokenizer;
  const auto token = [&](std::string_view text, bool generated) {
    const TokenId id = tokenizer.encode(text).front();
    return prompt::CoveredToken{id, text.size(), generated};
  };
  CHECK(typed_tail({}, tokenizer) == 0);
  std::vector<prompt::CoveredToken> tokens(5, token("name", false));
  CHECK(typed_tail(tokens, tokenizer) == 3);
  tokens[3] = token("name", true);
  CHECK(typed_tail(tokens, tokenizer) == 1);
  tokens[4].bytes = 5;  // a byte that the vocabulary has no token for
  CHECK(typed_tail(tokens, tokenizer) == 0);
}

TEST_CASE("a suggestion for a broken word begins behind the cursor, and its receipt says so") {
  test::Harness harness(would_write("return name;"));
  harness.set("f() {\n^\n}\n");
  harness.type("retu");
  const Outcome outcome = harness.ask();
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "rn name;");
  CHECK(outcome.receipt.healed_tokens == 3);
  CHECK(outcome.receipt.generated_tokens == 3);
  CHECK(outcome.receipt.evaluated_tokens + outcome.receipt.reused_tokens ==
        outcome.receipt.prompt_tokens);
}

TEST_CASE("an accepted suggestion keeps the healed tokens, also those of the typed part") {
  test::Harness harness(would_write("return name;"));
  harness.set("f() {\n^\n}\n");
  harness.type("retu");
  const Outcome outcome = harness.ask();
  REQUIRE(outcome.item);
  harness.accept(*outcome.item);
  const Outcome next = harness.ask();
  CHECK(next.receipt.evaluated_tokens <= 1);
  CHECK(next.receipt.healed_tokens == 0);
}

TEST_CASE("models that know broken words are left alone, unless the setting says otherwise") {
  auto script = would_write("return name;");
  script->fragment_trained = true;
  test::Harness harness(script);
  harness.set("f() {\n^\n}\n");
  harness.type("retu");
  CHECK(harness.ask().receipt.healed_tokens == 0);
  harness.options.healing = Healing::kOn;
  CHECK(harness.ask().receipt.healed_tokens == 3);
  script->fragment_trained = false;
  harness.options.healing = Healing::kOff;
  CHECK(harness.ask().receipt.healed_tokens == 0);
}

TEST_CASE("whatever a model would rather write, the typed bytes stay, at any temperature",
          "[one-thread]") {
  const test::TempDir folder;
  test::TinyModel tiny;
  tiny.vocab = GENERATE(test::TinyModel::Vocab::kSentencepiece, test::TinyModel::Vocab::kByteBpe);
  const auto model = engine::Model::open(test::write_tiny_model(tiny, folder.path())).value();
  auto engine =
      engine::make_engine(model,
                          engine::make_cpu_backend(
                              model, {.threads = 1, .isa = engine::Isa::kScalar, .page_count = 16})
                              .value(),
                          {})
          .value();
  const engine::Tokenizer& tokenizer = engine->tokenizer();
  const engine::ByteOrder order(tokenizer);
  const engine::SequenceId sequence = engine->open_sequence();
  const std::string code = "for (int i = 0; i < size; ++i) {\n    return value;\n}\nname = test;\n";
  std::mt19937 random(5);
  int healed = 0;
  for (int round = 0; round < 200; ++round) {
    const std::string typed = code.substr(0, 1 + random() % (code.size() - 1));
    std::vector<TokenId> prompt = {tokenizer.fim().middle};
    std::vector<prompt::CoveredToken> increment;
    for (const TokenId id : tokenizer.encode(typed, engine::Fragment::kInside)) {
      prompt.push_back(id);
      increment.push_back({id, tokenizer.bytes(id).size(), false});
    }
    const int tail = typed_tail(increment, tokenizer);
    REQUIRE(engine->prefill(sequence, prompt, {.logits_rows = tail + 1}));
    GenerationSetting setting{*engine, sequence, {}};
    setting.typed.emplace(TypedEnd{order, tail});
    Options options;
    options.tokens_max = 4;
    options.temperature = round % 2 == 0 ? 0.0F : 1.5F;
    options.seed = static_cast<std::uint64_t>(round);
    StopRules rules(StopRule::kNone, {});
    const Generated generated = generate(setting, options, rules).value();
    std::string text;
    for (std::size_t i = 0; i + static_cast<std::size_t>(generated.healed) < prompt.size(); ++i)
      text += tokenizer.bytes(prompt[i]);
    for (const prompt::CoveredToken& token : generated.tokens) text += tokenizer.bytes(token.id);
    CHECK(text == typed + rules.text());
    healed += generated.healed;
  }
  CHECK(healed > 100);  // else there was nothing to hold to
}
