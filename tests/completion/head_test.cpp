// prompts show other files once idle time has evaluated them, whole, and no keystroke waits for it.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/completion/answer/worker.h"
#include "daemon/completion/pace.h"
#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::EngineScript;
using test::ScriptedPrompt;

namespace {

#ifdef EFIMD_SANITIZED
constexpr unsigned kSeeds = 2;
#else
constexpr unsigned kSeeds = 6;
#endif

constexpr int kWide = 6000;
/// What a keystroke may evaluate at the most: a near view.
constexpr int kNearTokens = 110;
constexpr engine::TokenId kMark = 1;

Budgets budgets() {
  Budgets budgets;
  budgets.prompt_tokens_max = 300;
  budgets.near_tokens_max = 90;
  budgets.wide_tokens_max = kWide;
  budgets.costs.points = {{1, 10}, {64, 100}, {256, 400}};
  budgets.settle = std::chrono::milliseconds(0);
  return budgets;
}

std::shared_ptr<EngineScript> script_with_files() {
  auto script = std::make_shared<EngineScript>();
  script->window_tokens = engine_window_for(kWide);
  script->tokenizer.files.place = engine::FimFiles::Place::kBeforePrefix;
  script->tokenizer.files.shows_others = true;
  script->tokenizer.files.mark = kMark;
  script->tokenizer.files.after_path = "\n";
  return script;
}

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "  int value_" + std::to_string(i) + " = 0;\n";
  return text;
}

context::HeadPtr head_of(const std::string& declarations) {
  context::Head head;
  if (!declarations.empty()) head.slots.push_back({"other.h", declarations, {}, "imported"});
  return std::make_shared<const context::Head>(std::move(head));
}

/// One person with two files, and the worker that the daemon would run, on the test's own thread.
class Person {
 public:
  explicit Person(int line_count)
      : text_a(lines(line_count)),
        text_b(lines(line_count / 2) + "// b\n"),
        worker(std::make_unique<test::ScriptedEngine>(script),
               {.budgets = budgets(), .documents_max = 4, .ask_head = [this](HeadQuestion asked) {
                  questions.push_back(std::move(asked));
                }}) {
    script->continuation = [this](const ScriptedPrompt& prompt) {
      seen = prompt;
      return std::string("f();");
    };
  }

  Receipt ask(const std::string& uri = "file:///p/a.c") {
    Request request;
    request.document = {1, uri};
    text::Document& document = uri.ends_with("a.c") ? text_a : text_b;
    std::size_t& at = cursors[uri];
    const std::string_view text = document.snapshot()->bytes();
    at = std::min(text.find('\n', std::min(at == 0 ? text.size() / 2 : at, text.size() - 1)),
                  text.size());
    request.snapshot = document.snapshot();
    request.cursor = at;
    request.file = {"p", uri.substr(10)};
    request.home = {"/p", uri.substr(7)};
    request.options.recall = false;
    request.options.tokens_max = 8;
    request.arrived = std::chrono::steady_clock::now();
    seen = {};
    const Job job(request, [](const Outcome&) {});
    const Answer answer = worker.serve(job);
    REQUIRE_FALSE(answer.outcome.superseded);
    return answer.outcome.receipt;
  }
  void type(const std::string& text, const std::string& uri = "file:///p/a.c") {
    text::Document& document = uri.ends_with("a.c") ? text_a : text_b;
    std::size_t& at = cursors[uri];
    REQUIRE(document.replace(at, at, text));
    at += text.size();
  }
  void show(const std::string& declarations, const std::string& uri = "file:///p/a.c") {
    worker.show_head({{1, uri}, head_of(declarations)});
  }
  void rest() { CHECK(worker.idle({}) == kNever); }
  std::shared_ptr<EngineScript> script = script_with_files();
  text::Document text_a, text_b;
  std::map<std::string, std::size_t> cursors;
  std::vector<HeadQuestion> questions;
  Worker worker;
  ScriptedPrompt seen;
};

}  // namespace

TEST_CASE("A-13: a head is asked for once a text, and shown from idle time's next anchor on") {
  Person person(200);
  person.ask();
  person.rest();
  REQUIRE(person.questions.size() == 1);
  CHECK(person.questions[0].home.path == "/p/a.c");
  person.show("int area(int);\n");
  person.type(" ");
  Receipt receipt = person.ask();
  CHECK(receipt.head_files == 0);
  CHECK(receipt.view == "full");
  CHECK(receipt.evaluated_tokens <= 3);
  person.rest();
  person.type(" ");
  receipt = person.ask();
  CHECK(receipt.head_files == 1);
  CHECK(receipt.head_tokens > 0);
  CHECK(receipt.evaluated_tokens <= 3);
  CHECK(person.seen.head.find("int area(int);\n") != std::string::npos);
  CHECK(receipt.shown == 1);
}

TEST_CASE("A-13: files with equal heads share its pages") {
  const auto evaluated_for_b = [](bool shared) {
    Person person(200);
    std::string declarations;
    for (int i = 0; i < 60; ++i) declarations += "int declared_" + std::to_string(i) + "(int);\n";
    if (shared) {
      person.ask();
      person.show(declarations);
      person.rest();
    }
    person.ask("file:///p/b.c");
    person.rest();
    person.show(declarations, "file:///p/b.c");
    const int before = person.script->evaluated;
    person.rest();
    person.type(" ", "file:///p/b.c");
    CHECK(person.ask("file:///p/b.c").head_files == 1);
    return person.script->evaluated - before;
  };
  const int alone = evaluated_for_b(false), shared = evaluated_for_b(true);
  CAPTURE(alone, shared);
  CHECK(shared < alone - 300);
}

TEST_CASE("A-13: an empty head, and one for a closed document, change nothing") {
  Person person(100);
  person.ask();
  person.rest();
  person.show("");
  person.type(" ");
  CHECK(person.ask().evaluated_tokens <= 3);
  person.worker.close({1, "file:///p/a.c"});
  person.show("int f();\n");
  CHECK(person.questions.back().snapshot == nullptr);
}

TEST_CASE("A-13: whatever changes a head, the next prompts are right and no keystroke waits") {
  const std::vector<std::string> heads = {"", "int area(int);\n", "int area(long);\n",
                                          "struct Shape { int sides; };\nint area(long);\n"};
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    Person person(250);
    person.ask();
    person.rest();
    std::string wanted;
    std::vector<std::string> given = {""};
    for (int turn = 0; turn < 40; ++turn) {
      CAPTURE(seed, turn, wanted);
      if (random() % 3 == 0) {
        wanted = heads[random() % heads.size()];
        given.push_back(wanted);
        person.show(wanted);
      }
      person.type("x");
      const Receipt receipt = person.ask();
      // Nobody waits for the head: what a keystroke evaluates is what it would without.
      CHECK(receipt.evaluated_tokens <= kNearTokens);
      // A prompt shows a head that was true at some time, whole.
      bool is_one = receipt.prompt_tokens == 0;
      for (const std::string& each : given)
        is_one |= each.empty() ? receipt.head_files == 0
                               : person.seen.head.find("other.h\n" + each) != std::string::npos;
      CHECK(is_one);
      if (random() % 2 == 0) {
        person.rest();
        person.type("y");
        CHECK(person.ask().head_files == (wanted.empty() ? 0 : 1));
        if (!wanted.empty() && !person.seen.head.empty())
          CHECK(person.seen.head.find("other.h\n" + wanted) != std::string::npos);
      }
    }
  }
}
