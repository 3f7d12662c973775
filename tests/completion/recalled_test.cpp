#include "daemon/completion/answer/recalled.h"

#include <catch2/catch.hpp>

#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::Harness;
using test::says;

namespace {

constexpr char kUri[] = "file:///project/a.cpp";

/// A file that says a line three times already, with the cursor in a fourth.
const std::string kRepeated =
    "void first() {\n  registry.insert_unique(key, std::move(value));\n}\n"
    "void second() {\n  registry.insert_unique(key, std::move(value));\n}\n"
    "void third() {\n  registry.insert_unique(key, std::move(value));\n}\n";
const std::string kRest = "_unique(key, std::move(value));";

Outcome ask(Harness& harness, TextHome home = {"/project", "/project/a.cpp"}) {
  Request request = harness.request(kUri);
  request.home = std::move(home);
  return harness.submit(std::move(request)).get();
}

}  // namespace

TEST_CASE(
    "A-12: a line that the file says already is suggested where the model says something else") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kUri);
  const Outcome outcome = ask(harness);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == kRest);
  CHECK(outcome.receipt.source == "recalled");
  CHECK(harness.service->status().sources.at("recalled").shown == 1);
}

TEST_CASE("A-12: where the model says the same, the receipt names both") {
  Harness harness(says(kRest));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kUri);
  const Outcome outcome = ask(harness);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == kRest);
  CHECK(outcome.receipt.source == "recalled+model");
}

TEST_CASE("A-12: a document without a home, or with recall off, has the model's text alone") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kUri);
  CHECK(ask(harness, {}).item->text == "xyz");
  harness.options.recall = false;
  CHECK(ask(harness).item->text == "xyz");
}

TEST_CASE("A-12: text of a project's files is suggested in that project alone") {
  Harness harness(says("xyz"));
  const recall::File file{"/project/b.cpp", kRepeated};
  harness.service->change_index([batch = recall::make_batch({&file, 1})](recall::Index& index) {
    index.add_files("/project", batch);
  });
  harness.set("void fourth() {\n  registry.insert^\n}\n", kUri);
  CHECK(ask(harness).item->text == kRest);
  CHECK(ask(harness, {"/other", "/other/a.cpp"}).item->text == "xyz");
}

TEST_CASE("A-12: a document that became a secret leaves the index") {
  Harness harness(says("xyz"));
  constexpr char kOther[] = "file:///project/b.cpp";
  harness.set(kRepeated + "^", kOther);
  const auto ask_other = [&](TextHome home) {
    Request request = harness.request(kOther);
    request.home = std::move(home);
    return harness.submit(std::move(request)).get();
  };
  ask_other({"/project", "/project/b.cpp"});
  harness.set("void fourth() {\n  registry.insert^\n}\n", kUri);
  REQUIRE(ask(harness).item->text == kRest);
  ask_other({});
  const Outcome outcome = ask(harness);
  CHECK((!outcome.item || outcome.item->text != kRest));
}

TEST_CASE("A-12: what the user rejected is not recalled again") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kUri);
  REQUIRE(ask(harness).item->text == kRest);
  harness.dismiss(kUri);
  const Outcome outcome = ask(harness);
  CHECK((!outcome.item || outcome.item->text != kRest));
}

TEST_CASE("A-12: what was just deleted is offered again only to who types it") {
  Harness harness(says("xyz"));
  harness.set("int main() {\n  return registry.insert_unique(key);^\n}\n", kUri);
  ask(harness);
  harness.erase(std::string("registry.insert_unique(key);").size(), kUri);
  CHECK(ask(harness).receipt.source == "engine");
  harness.type("regi", kUri);
  const Outcome outcome = ask(harness);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "stry.insert_unique(key);");
}

TEST_CASE("A-12: drafts from recall leave what the model writes as it is") {
  const auto written = [](bool recall) {
    Harness harness(says("_unique(key, std::move(other));"));
    harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kUri);
    harness.options.recall = recall;
    // A model that is never sure enough leaves the suggestion to what is shown; its tokens are told.
    const Outcome outcome = ask(harness);
    return std::pair(outcome.receipt.generated_tokens, outcome.receipt.accepted_tokens);
  };
  const auto [with, accepted] = written(true);
  const auto [without, none] = written(false);
  CHECK(with == without);
  CHECK(none == 0);
  CHECK(accepted >= 0);
}

TEST_CASE("A-12: a suggestion that was accepted counts for its source") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kUri);
  const Outcome outcome = ask(harness);
  harness.accept(*outcome.item, kUri);
  ask(harness);
  CHECK(harness.service->status().sources.at("recalled").accepted == 1);
}

TEST_CASE("A-12: recalled text must have the better expected gain") {
  Recalled recalled;
  recalled.item = Item{"twelve bytes", 0, 0};
  recalled.gain = 6;
  CHECK(is_better(recalled, {Item{"twelve bytes", 0, 0}}, 0.4));
  CHECK_FALSE(is_better(recalled, {Item{"twelve bytes", 0, 0}}, 0.6));
  CHECK_FALSE(is_better(recalled, {Item{"twenty-four bytes it is!", 0, 0}}, 0.3));
  CHECK_FALSE(is_better({}, {Item{"a", 0, 0}}, 0.1));
}
