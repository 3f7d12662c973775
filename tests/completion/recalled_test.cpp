#include "daemon/completion/answer/recalled.h"

#include <catch2/catch.hpp>

#include "daemon/completion/answer/worker.h"
#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::Harness;
using test::says;

namespace {

constexpr char kRecalledUri[] = "file:///project/a.cpp";

/// A file that says a line three times already, with the cursor in a fourth.
const std::string kRepeated =
    "void first() {\n  registry.insert_unique(key, std::move(value));\n}\n"
    "void second() {\n  registry.insert_unique(key, std::move(value));\n}\n"
    "void third() {\n  registry.insert_unique(key, std::move(value));\n}\n";
const std::string kRest = "_unique(key, std::move(value));";

/// A model that holds every token for nearly as likely as its own choice.
std::shared_ptr<test::EngineScript> says_nothing_sure() {
  auto script = says("xyz");
  script->chances[0] = 0.05;
  return script;
}

Outcome ask(Harness& harness, TextHome home = {"/project", "/project/a.cpp"}) {
  Request request = harness.request(kRecalledUri);
  request.home = std::move(home);
  return harness.submit(std::move(request)).get();
}

}  // namespace

TEST_CASE(
    "A-12: a line that the file says already is suggested where the model says something else") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
  const Outcome outcome = ask(harness);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == kRest);
  CHECK(outcome.receipt.source == "recalled");
  CHECK(harness.service->status().sources.at("recalled").shown == 1);
}

TEST_CASE("A-12: where the model says the same, the receipt names both") {
  Harness harness(says(kRest));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
  const Outcome outcome = ask(harness);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == kRest);
  CHECK(outcome.receipt.source == "recalled+model");
}

TEST_CASE("A-12: a document without a home, or with recall off, has the model's text alone") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
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
  harness.set("void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
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
  harness.set("void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
  REQUIRE(ask(harness).item->text == kRest);
  ask_other({});
  const Outcome outcome = ask(harness);
  CHECK((!outcome.item || outcome.item->text != kRest));
}

TEST_CASE("A-12: a file that another editor has open stays as that editor has it") {
  Harness harness(says("xyz"));
  const TextHome home{"/project", "/project/b.cpp"};
  for (const char* uri : {"file:///project/b.cpp", "file:///project/./b.cpp"}) {
    harness.set(kRepeated + "^", uri);
    Request request = harness.request(uri);
    request.home = home;
    harness.submit(std::move(request)).get();
  }
  harness.set("void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
  harness.service->close(harness.request("file:///project/./b.cpp").document);
  CHECK(ask(harness).item->text == kRest);
  harness.service->close(harness.request("file:///project/b.cpp").document);
  harness.set("void fifth() {\n  registry.insert^\n}\n", kRecalledUri);
  const Outcome outcome = ask(harness);
  CHECK((!outcome.item || outcome.item->text != kRest));
}

TEST_CASE("A-12: a document that is closed after many others leaves its file's text alone") {
  const auto script = says("xyz");
  recall::Index index;
  completion::Worker worker(std::make_unique<test::ScriptedEngine>(script),
                            {.budgets = {}, .documents_max = 2, .index = &index});
  const auto open = [&](int number, const std::string& text) {
    const std::string path = "/project/" + std::to_string(number) + ".cpp";
    worker.open({.document = {1, "file://" + path},
                 .snapshot = text::Document(text).snapshot(),
                 .home = {"/project", path}});
  };
  open(0, kRepeated);
  for (int number = 1; number < 5; ++number) open(number, "int x;\n");
  CHECK(index.usage().documents == 5);
  worker.close({1, "file:///project/0.cpp"});
  CHECK(index.usage().documents == 4);
  const std::string asked = "void fourth() {\n  registry.insert";
  CHECK(index.find({{"/project", "/project/4.cpp"}, asked, asked.size()}).empty());
}

TEST_CASE("A-12: the lines under a recalled line come with it, as far as the block goes") {
  const std::string body =
      "  registry.insert_unique(key, std::move(value));\n  if (registry.is_full()) {\n"
      "    registry.drop_oldest();\n  }\n}\n";
  const std::string above =
      "void first() {\n" + body + "void second() {\n" + body + "void third() {\n" + body;
  const std::string block = "if (registry.is_full()) {\n    registry.drop_oldest();\n  }";
  Harness harness(says_nothing_sure());
  harness.set(above + "void fourth() {\n  registry.insert_unique(key, std::move(value));\n  ^",
              kRecalledUri);
  SECTION("where blocks are allowed") {
    const auto outcome = ask(harness);
    REQUIRE(outcome.item);
    CHECK(outcome.item->text.starts_with(block));
  }
  SECTION("where a suggestion is a line") {
    Request request = harness.request(kRecalledUri);
    request.home = {"/project", "/project/a.cpp"};
    request.options.stop = StopRule::kLine;
    const auto outcome = harness.submit(std::move(request)).get();
    REQUIRE(outcome.item);
    CHECK(outcome.item->text == "if (registry.is_full()) {");
  }
}

TEST_CASE("A-12: what the user rejected is not recalled again") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
  REQUIRE(ask(harness).item->text == kRest);
  harness.dismiss(kRecalledUri);
  const Outcome outcome = ask(harness);
  CHECK((!outcome.item || outcome.item->text != kRest));
}

TEST_CASE("A-12: what was just deleted is offered again only to who types it") {
  Harness harness(says_nothing_sure());
  harness.set("int main() {\n  return registry.insert_unique(key);^\n}\n", kRecalledUri);
  ask(harness);
  harness.erase(std::string("registry.insert_unique(key);").size(), kRecalledUri);
  CHECK(ask(harness).receipt.source == "engine");
  harness.type("regi", kRecalledUri);
  const Outcome outcome = ask(harness);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "stry.insert_unique(key);");
}

TEST_CASE("A-12: text of a request ahead of the user is not recalled") {
  Harness harness(says_nothing_sure());
  const std::string written = "registry.insert_unique(key);";
  harness.set("int main() {\n  return ^\n}\n", kRecalledUri);
  ask(harness);
  harness.type(written, kRecalledUri);
  Request ahead = harness.request(kRecalledUri);
  ahead.home = {"/project", "/project/a.cpp"};
  ahead.ahead = true;
  harness.submit(std::move(ahead)).get();
  harness.erase(written.size(), kRecalledUri);
  ask(harness);
  harness.type("regi", kRecalledUri);
  CHECK(ask(harness).receipt.source == "engine");
}

TEST_CASE("A-12: drafts from recall leave what the model writes as it is") {
  // It begins as what recall knows and is longer, so that the model's text is shown. Drafts that are
  // accepted in part are compared on the real engine (tests/keystrokes/property_test.cpp).
  const std::string said = "_unique(key, std::move(value_of_another_and_much_longer_name));";
  const auto script = std::make_shared<test::EngineScript>();
  script->continues_everywhere = true;  // after the accepted part of a draft, too
  script->continuation = [&](const test::ScriptedPrompt& prompt) {
    for (std::size_t already = said.size(); already > 0; --already)
      if (prompt.increment.ends_with(said.substr(0, already))) return said.substr(already);
    return said;
  };
  completion::Budgets budgets;
  budgets.prompt_tokens_max = budgets.near_tokens_max = 2048;
  budgets.costs.points = {{1, 10}, {16, 12}};  // drafted tokens are nearly free
  const test::Marked place = test::marked(kRepeated + "void fourth() {\n  registry.insert^\n}\n");
  const text::Document document(place.text);
  const auto answer = [&](bool recall, float temperature) {
    recall::Index index;
    completion::Worker worker(std::make_unique<test::ScriptedEngine>(script),
                              {.budgets = budgets, .index = &index});
    Request request;
    request.document = {1, kRecalledUri};
    request.snapshot = document.snapshot();
    request.cursor = place.cursor;
    request.home = {"/project", "/project/a.cpp"};
    request.options.recall = recall;
    request.options.temperature = temperature;
    request.options.confidence = 0;
    const completion::Job job(request, [](const Outcome&) {});
    return worker.serve(job).outcome;
  };
  const Outcome with = answer(true, 0);
  const Outcome without = answer(false, 0);
  REQUIRE(with.item);
  REQUIRE(without.item);
  CHECK(with.item->text == said);
  CHECK(without.item->text == said);
  CHECK(with.receipt.generated_tokens == without.receipt.generated_tokens);
  CHECK(with.receipt.accepted_tokens > 0);
  CHECK(with.receipt.drafted_tokens >= with.receipt.accepted_tokens);
  CHECK(with.receipt.steps < without.receipt.steps);
  CHECK(without.receipt.drafted_tokens == 0);
  CHECK(answer(true, 0.5F).receipt.drafted_tokens == 0);
}

TEST_CASE("eagerness moves what is shown of recalled text and of the model's") {
  // Three ways on from here: none is sure.
  const std::string ambiguous =
      "  emit(alpha, one);\n  x();\n  emit(beta, two);\n  y();\n  emit(gamma, three);\n  emit^\n";
  const auto shown = [&](Eagerness eagerness) {
    Harness harness(says_nothing_sure());
    harness.set(ambiguous, kRecalledUri);
    harness.options.eagerness = eagerness;
    const Outcome outcome = ask(harness);
    return outcome.item ? outcome.item->text.size() : 0;
  };
  CHECK(shown(Eagerness::kLow) <= shown(Eagerness::kMedium));
  CHECK(shown(Eagerness::kMedium) <= shown(Eagerness::kHigh));
  CHECK(shown(Eagerness::kLow) < shown(Eagerness::kHigh));
  CHECK(least_model_confidence(Eagerness::kLow) > least_model_confidence(Eagerness::kMedium));
  CHECK(least_model_confidence(Eagerness::kMedium) > least_model_confidence(Eagerness::kHigh));
}

TEST_CASE("A-12: a suggestion that was accepted counts for its source") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
  const Outcome outcome = ask(harness);
  harness.accept(*outcome.item, kRecalledUri);
  ask(harness);
  CHECK(harness.service->status().sources.at("recalled").accepted == 1);
}

TEST_CASE("A-12: what is typed through is shown once, and counts for its source when it is taken") {
  Harness harness(says("xyz"));
  harness.set(kRepeated + "void fourth() {\n  registry.insert^\n}\n", kRecalledUri);
  REQUIRE(ask(harness).item->text == kRest);
  harness.type("_", kRecalledUri);
  REQUIRE(ask(harness).item->text == kRest.substr(1));
  harness.type("u", kRecalledUri);
  const Outcome outcome = ask(harness);
  REQUIRE(outcome.item->text == kRest.substr(2));
  CHECK(harness.service->status().sources.at("recalled").shown == 1);
  harness.accept(*outcome.item, kRecalledUri);
  ask(harness);
  CHECK(harness.service->status().sources.at("recalled").accepted == 1);

  Harness model(says("xyz = 1;"));
  model.set("void fourth() {\n  ^\n}\n", kRecalledUri);
  REQUIRE(ask(model).item->text == "xyz = 1;");
  model.type("x", kRecalledUri);
  const Outcome rest = ask(model);
  CHECK(rest.receipt.source == "typed-through");
  CHECK(model.service->status().sources.at("engine").shown == 1);
  model.accept(*rest.item, kRecalledUri);
  ask(model);
  const auto sources = model.service->status().sources;
  CHECK_FALSE(sources.contains("typed-through"));
  CHECK(sources.at("engine").accepted == 1);
}

TEST_CASE("A-12: of candidates that are as good, the one is shown that the model finds likelier") {
  const std::string both =
      "  x();\n  total = north(one);\n  x();\n  total = south(two);\n  x();\n  total = ^\n";
  const auto shown = [&](const std::string& said) {
    const auto script = says(said + "(zzz);");
    script->chances[0] = 0.9;
    script->chances[said.size()] = 0.05;
    Harness harness(script);
    harness.set(both, kRecalledUri);
    const Outcome outcome = ask(harness);
    CHECK(outcome.receipt.source == "recalled");
    return outcome.item ? outcome.item->text : "";
  };
  CHECK(shown("north") == "north(one);");
  CHECK(shown("south") == "south(two);");
}

TEST_CASE("A-12: recalled text must have the better expected gain") {
  Recalled recalled;
  recalled.item = Item{"twelve bytes", 0, 0};
  recalled.gain = 6;
  CHECK(is_better(recalled, 5.9));
  CHECK_FALSE(is_better(recalled, 6.1));
  CHECK_FALSE(is_better({}, 0));
}
