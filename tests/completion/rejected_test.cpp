#include <catch2/catch.hpp>

#include "daemon/completion/silence.h"
#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::Harness;
using test::says;

namespace {

const std::string kRejectedHere = std::string("-").append(silence::kRejected);

/// A document in which "sum(values);" is on the screen after "total = ".
Harness shown() {
  Harness harness(says("sum(values);"));
  harness.set("int main() {\n  int total = ^\n}\n");
  CHECK(harness.shown() == "sum(values);");
  return harness;
}

}  // namespace

TEST_CASE("a suggestion that was typed away is not shown there again") {
  Harness harness = shown();
  harness.type("0");
  harness.ask();
  harness.erase(1);
  CHECK(harness.shown() == kRejectedHere);
  CHECK(harness.shown() == kRejectedHere);
}

TEST_CASE("a suggestion that was agreed with, left or asked for again is shown again") {
  Harness harness = shown();
  CHECK(harness.shown() == "sum(values);");
  harness.type("s");
  harness.ask();
  harness.erase(1);
  CHECK(harness.shown() == "sum(values);");
  const std::size_t place = harness.cursors["file:///a"];
  harness.cursors["file:///a"] = 0;
  harness.ask();
  harness.cursors["file:///a"] = place;
  CHECK(harness.shown() == "sum(values);");
}

TEST_CASE("a suggestion that was taken and undone was turned down") {
  Harness harness = shown();
  const Outcome outcome = harness.ask();
  REQUIRE(outcome.item);
  harness.accept(*outcome.item);
  harness.ask();
  harness.erase(outcome.item->text.size());
  CHECK(harness.shown() == kRejectedHere);
}

TEST_CASE("a suggestion that begins with what is there was taken, too") {
  Harness harness(says(");"));
  harness.set("int main() {\n  f(^)\n}\n");
  const Outcome outcome = harness.ask();
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == ");");
  CHECK(outcome.item->replace_end == outcome.item->replace_begin + 1);
  harness.accept(*outcome.item);
  harness.ask();
  const std::size_t begin = outcome.item->replace_begin;
  REQUIRE(harness.documents.at("file:///a").replace(begin, begin + 2, ")"));
  harness.cursors["file:///a"] = begin;
  CHECK(harness.shown() == kRejectedHere);
}

TEST_CASE("a suggestion that was dismissed is not shown there again, and is elsewhere") {
  auto script = std::make_shared<test::EngineScript>();
  script->continuation = [](const test::ScriptedPrompt& prompt) {
    return std::string(prompt.increment.ends_with('s') ? "um(values);" : "sum(values);");
  };
  Harness harness(script);
  harness.set("int main() {\n  int total = ^\n}\n");
  CHECK(harness.shown() == "sum(values);");
  harness.dismiss();
  CHECK(harness.shown() == kRejectedHere);
  harness.type("s");
  CHECK(harness.shown() == "um(values);");
  harness.dismiss();
  CHECK(harness.shown() == kRejectedHere);
  harness.erase(1);
  CHECK(harness.shown() == kRejectedHere);
}

TEST_CASE("what was dismissed when the text had already changed counts for nothing") {
  Harness harness = shown();
  const text::SnapshotPtr before = harness.documents.at("file:///a").snapshot();
  harness.type("s");
  CHECK(harness.shown() == "um(values);");
  harness.dismiss(before, "file:///a");
  CHECK(harness.shown() == "um(values);");
  harness.dismiss(before, "file:///unknown");
}

TEST_CASE("its place moves with edits above it, and is another one with another text in front") {
  Harness harness = shown();
  harness.type("0");
  harness.ask();
  harness.erase(1);
  REQUIRE(harness.documents.at("file:///a").replace(0, 0, "// more\n"));
  harness.cursors["file:///a"] += 8;
  CHECK(harness.shown() == kRejectedHere);
  harness.erase(2);
  harness.ask();
  harness.type("=  ");
  CHECK(harness.shown() != kRejectedHere);
}
