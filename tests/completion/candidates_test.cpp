#include <catch2/catch.hpp>

#include "daemon/completion/silence.h"
#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::Harness;
using test::says;

namespace {

Outcome ask_by_hand(Harness& harness) {
  Request request = harness.request();
  request.by_hand = true;
  return harness.submit(request).get();
}

std::vector<std::string> texts(const Outcome& outcome) {
  std::vector<std::string> shown;
  if (outcome.item) shown.push_back(outcome.item->text);
  for (const Item& item : outcome.more) shown.push_back(item.text);
  return shown;
}

/// A script that goes on with `text` wherever the prompt ends with a beginning of it.
std::shared_ptr<test::EngineScript> knows(std::string text) {
  auto script = std::make_shared<test::EngineScript>();
  script->continues_everywhere = true;
  script->continuation = [text = std::move(text)](const test::ScriptedPrompt& prompt) {
    for (std::size_t said = text.size() + 1; said-- > 0;)
      if (prompt.increment.ends_with(text.substr(0, said))) return text.substr(said);
    return text;
  };
  return script;
}

Outcome with_selected(Harness& harness, std::size_t begin, std::size_t end, std::string text) {
  Request request = harness.request();
  request.selected = Selected{begin, end, std::move(text)};
  return harness.submit(request).get();
}

}  // namespace

TEST_CASE("a request by hand gets three suggestions from one prompt, in shared steps") {
  Harness harness(says("sum(a, b);"));
  harness.script->alternatives = {"max(a, b);", "0;", "never asked for"};
  harness.set("int total = ^\n");
  const Outcome outcome = ask_by_hand(harness);
  CHECK(texts(outcome) == std::vector<std::string>{"sum(a, b);", "max(a, b);", "0;"});
  CHECK(harness.script->holds == 1);
  CHECK(harness.script->appends <= static_cast<int>(std::string("sum(a, b);").size()));
  CHECK(harness.script->sequences_open == 1);
}

TEST_CASE("a request while typing gets one") {
  Harness harness(says("sum(a, b);"));
  harness.script->alternatives = {"max(a, b);"};
  harness.set("int total = ^\n");
  CHECK(texts(harness.ask()) == std::vector<std::string>{"sum(a, b);"});
}

TEST_CASE("without KV memory for forks there is one suggestion") {
  auto script = says("sum(a, b);");
  script->alternatives = {"max(a, b);"};
  script->page_count = 1;
  Harness harness(script);
  harness.set("int total = ^\n");
  CHECK(texts(ask_by_hand(harness)) == std::vector<std::string>{"sum(a, b);"});
}

TEST_CASE("what was turned down makes room for what is next") {
  Harness harness(says("sum(a, b);"));
  harness.script->alternatives = {"max(a, b);"};
  harness.set("int total = ^\n");
  harness.ask();
  harness.type("~");
  harness.ask();
  harness.erase(1);
  CHECK(texts(ask_by_hand(harness)) == std::vector<std::string>{"max(a, b);"});
}

TEST_CASE("a stop ends all of them") {
  Harness harness(says("sum(a, b);"));
  harness.script->alternatives = {"max(a, b);"};
  harness.set("int total = ^\n");
  harness.script->append_gate.close();
  Request request = harness.request();
  request.by_hand = true;
  std::stop_source stop;
  request.stop = stop.get_token();
  auto answer = harness.submit(request);
  harness.script->append_gate.wait_until_reached();
  stop.request_stop();
  harness.script->append_gate.open();
  CHECK(answer.get().superseded);
  harness.service.reset();
  CHECK(harness.script->sequences_open == 0);
}

TEST_CASE("the editor's selected completion is spelled first, and replaced with what follows") {
  Harness harness(knows("values.push_back(3);"));
  harness.set("values.p^\n");
  const Outcome outcome = with_selected(harness, 7, 8, "push_back");
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "push_back(3);");
  CHECK(outcome.item->replace_begin == 7);
  CHECK(outcome.item->replace_end == 8);
}

TEST_CASE("a selected completion may replace other letters than its own, and what is behind") {
  Harness harness(knows("values.push_back(3);"));
  harness.set("values.pb^ck\n");
  const Outcome outcome = with_selected(harness, 7, 11, "push_back");
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "push_back(3);");
  CHECK(outcome.item->replace_begin == 7);
  CHECK(outcome.item->replace_end == 11);
}

TEST_CASE("a selected completion that is not at the cursor is silence with its reason") {
  Harness harness(says("(3);"));
  harness.set("values.p^\nmore\n");
  CHECK(with_selected(harness, 0, 3, "push_back").receipt.reason == silence::kSelectedElse);
  CHECK(with_selected(harness, 7, 12, "push_back").receipt.reason == silence::kSelectedElse);
  CHECK(with_selected(harness, 7, 8, "push\nback").receipt.reason == silence::kSelectedElse);
}
