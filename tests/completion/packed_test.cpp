#include "daemon/completion/answer/packed.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/scripted_engine.h"

using namespace efimd;
using namespace efimd::completion;
using State = PackedPrompt::State;

namespace {

struct Packed {
  void add(const std::string& text) {
    prompts.push_back(
        {engine.open_sequence(), engine.tokenizer().encode(text, engine::Fragment::kInside)});
  }
  bool evaluate(const std::stop_token& stop = {}) {
    const Packing packing{[this] { return step_tokens; },
                          [this](int tokens, double) { steps.push_back(tokens); }};
    return evaluate_packed(engine, prompts, packing, stop);
  }
  std::shared_ptr<test::EngineScript> script = std::make_shared<test::EngineScript>();
  test::ScriptedEngine engine{script};
  std::vector<PackedPrompt> prompts;
  int step_tokens = 64;
  std::vector<int> steps;
};

}  // namespace

TEST_CASE("several prompts are evaluated in steps that they share, and each is whole") {
  Packed packed;
  for (int i = 0; i < 5; ++i) packed.add(std::string(40, static_cast<char>('a' + i)));
  CHECK(packed.evaluate());
  for (const PackedPrompt& prompt : packed.prompts) {
    CHECK(prompt.state == State::kWhole);
    const auto held = packed.engine.held(prompt.sequence);
    CHECK(std::vector(held.begin(), held.end()) == prompt.tokens);
  }
  CHECK(packed.steps == std::vector{64, 64, 64, 8});
}

TEST_CASE("what prompts begin with is evaluated once") {
  Packed packed;
  const std::string head(200, 'h');
  for (int i = 0; i < 6; ++i) packed.add(head + std::string(30, static_cast<char>('a' + i)));
  CHECK(packed.evaluate());
  for (const PackedPrompt& prompt : packed.prompts) CHECK(prompt.state == State::kWhole);
  // The head's full pages once, the rest of it and the bodies six times.
  CHECK(packed.script->evaluated == 192 + 6 * 38);
}

TEST_CASE("a prompt that has no room does not hold up the others") {
  Packed packed;
  packed.script->page_count = 3;
  packed.step_tokens = 32;
  packed.add(std::string(60, 'a'));
  packed.add(std::string(90, 'b'));
  CHECK(packed.evaluate());
  CHECK(packed.prompts[0].state == State::kWhole);
  CHECK(packed.prompts[1].state == State::kNoRoom);
}

TEST_CASE("a stop and a failure of the device end it") {
  Packed packed;
  packed.add("int a;");
  std::stop_source stop;
  stop.request_stop();
  CHECK_FALSE(packed.evaluate(stop.get_token()));
  packed.script->append_error = Error{Fault::kDeviceLost, "gone", ""};
  CHECK_FALSE(packed.evaluate());
  CHECK(packed.prompts[0].state == State::kWaiting);
  packed.script->append_error.reset();
  CHECK(packed.evaluate());
  CHECK(packed.prompts[0].state == State::kWhole);
}

TEST_CASE("nothing to evaluate is no step") {
  Packed packed;
  CHECK(packed.evaluate());
  CHECK(packed.steps.empty());
}
