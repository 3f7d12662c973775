// Wide windows (A-4, I-5): idle time comes from the first answer's few lines to the whole file, in
// stages that each serve, and nobody waits for it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "daemon/completion/answer/worker.h"
#include "daemon/completion/pace.h"
#include "tests/completion/harness.h"
#include "tests/completion/wide.h"

using namespace efimd;
using namespace efimd::completion;
using test::EngineScript;
using test::says;
using test::ScriptedPrompt;

namespace {

// Sanitizers take twenty times as long, and two draws show them what eight do.
#ifdef EFIMD_SANITIZED
constexpr unsigned kSeeds = 2;
#else
constexpr unsigned kSeeds = 8;
#endif

using test::kWide;
using test::lines;
using test::wide_budgets;

/// One person, one file, and the worker that the daemon would run, on the test's own thread.
class Person {
 public:
  explicit Person(std::string text, Budgets with = wide_budgets(),
                  std::shared_ptr<EngineScript> script_ = roomy())
      : script(std::move(script_)),
        document(text),
        cursor(text.size() / 2),
        worker(std::make_unique<test::ScriptedEngine>(script), {std::move(with), 4}) {
    script->continuation = [this](const ScriptedPrompt& prompt) {
      seen = prompt;
      return std::string("f();");
    };
    to_line_end();
  }

  static std::shared_ptr<EngineScript> roomy() {
    auto script = std::make_shared<EngineScript>();
    script->window_tokens = engine_window_for(kWide);
    return script;
  }

  Receipt ask() {
    seen = {};
    const Job job(request(), [](const Outcome&) {});
    Answer answer = worker.serve(job);
    REQUIRE_FALSE(answer.outcome.superseded);
    const Receipt receipt = answer.outcome.receipt;
    // KV-5 stands on it: a prompt shows the text, whatever was evaluated for it before.
    if (receipt.prompt_tokens > 0) check_prompt();
    return receipt;
  }
  /// Asks, but the next key comes before anything is evaluated.
  void ask_in_vain() {
    Job job(request(), [](const Outcome&) {});
    script->hold_gate.close();
    std::jthread next([&] {
      script->hold_gate.wait_until_reached();
      job.stop.request_stop();
      script->hold_gate.open();
    });
    CHECK(worker.serve(job).outcome.superseded);
  }
  void type(const std::string& text) {
    REQUIRE(document.replace(cursor, cursor, text));
    cursor += text.size();
  }
  void insert_far(std::size_t at, const std::string& text) {
    REQUIRE(document.replace(at, at, text));
    if (at <= cursor) cursor += text.size();
  }
  void jump(std::size_t to) {
    cursor = std::min(to, document.snapshot()->bytes().size());
    to_line_end();
  }
  /// Closes the file and opens it again, with `more` in front.
  void open_again(const std::string& more) {
    worker.close({1, uri});
    const text::SnapshotPtr old = document.snapshot();
    document = text::Document(more + std::string(old->bytes()));
    cursor += more.size();
    OpenedDocument opened;
    opened.document = {1, uri};
    opened.snapshot = document.snapshot();
    worker.open(opened);
  }
  /// Idle time of so many steps of the engine, then a keystroke comes.
  void idle_for(int steps) {
    std::stop_source stop;
    script->append_gate.close();
    std::jthread idle([&] { worker.idle(stop.get_token()); });
    for (int i = 0; i < steps; ++i) {
      script->append_gate.wait_until_reached();
      script->append_gate.step();
    }
    script->append_gate.wait_until_reached();
    const int before = script->appends;
    stop.request_stop();
    script->append_gate.open();
    idle.join();
    steps_after_stop = script->appends - before;
  }
  void rest() { CHECK(worker.idle({}) == kNever); }

  std::shared_ptr<EngineScript> script;
  text::Document document;
  std::size_t cursor;
  std::string uri = "file:///a";
  Worker worker;
  ScriptedPrompt seen;
  int steps_after_stop = 0;

 private:
  Request request() const {
    Request request;
    request.document = {1, uri};
    request.snapshot = document.snapshot();
    request.cursor = cursor;
    request.options.recall = false;
    request.options.tokens_max = 8;
    request.arrived = std::chrono::steady_clock::now();
    return request;
  }
  void to_line_end() {
    const std::string_view text = document.snapshot()->bytes();
    cursor = std::min(text.find('\n', cursor), text.size());
  }
  void check_prompt() const {
    const std::string_view text = document.snapshot()->bytes();
    std::string shown = seen.before + seen.increment;
    // A generation that goes on has its own beginning in the prompt.
    if (shown.ends_with("f();") && !text.substr(0, cursor).ends_with("f();"))
      shown.resize(shown.size() - 4);
    REQUIRE(shown.size() <= cursor);
    CHECK(text.substr(cursor - shown.size(), shown.size()) == shown);
    const std::string_view behind = text.substr(cursor);
    CHECK(behind.find(seen.after) <= 2);
  }
};

}  // namespace

TEST_CASE("A-4, I-5: the first answer shows a few lines, and idle time shows the whole file") {
  Person person(lines(350));
  const Receipt first = person.ask();
  CHECK(first.view == "near");
  CHECK(first.shown < 0.1);
  CHECK(first.evaluated_tokens < 110);
  person.rest();
  person.type(" ");
  const Receipt then = person.ask();
  CHECK(then.view == "full");
  CHECK(then.shown == 1);
  CHECK(then.evaluated_tokens <= 3);
  CHECK(then.prompt_tokens > 3000);
}

TEST_CASE("I-5: every stage serves as soon as it is there") {
  Person person(lines(350));
  person.ask();
  std::vector<std::string> views;
  for (int pause = 0; pause < 3000 && (views.empty() || views.back() != "full"); ++pause) {
    person.idle_for(2);
    person.type("x");
    const Receipt receipt = person.ask();
    if (receipt.prompt_tokens > 0 && (views.empty() || views.back() != receipt.view))
      views.emplace_back(receipt.view);
    person.cursor -= 1;
    REQUIRE(person.document.replace(person.cursor, person.cursor + 1, ""));
    person.ask();
  }
  CHECK(views ==
        std::vector<std::string>{"near", "first window", "short after", "part of after", "full"});
}

TEST_CASE("I-5: a fuller stage evaluates only more of after, also where text was typed meanwhile") {
  Person person(lines(700));
  person.ask();
  int keys = 0;
  Receipt receipt;
  while (receipt.view != "full" && keys < 500) {
    person.idle_for(16);
    person.type(keys % 4 == 3 ? "\n" : "x");
    receipt = person.ask();
    ++keys;
  }
  REQUIRE(receipt.view == "full");
  // The near view, the first window, and the short after that the wide stages begin with.
  const int else_evaluated = 90 + 300 + 64;
  // Where idle work runs on between two keys, they are fewer, and each stands for more of it.
  const int typed = 3 * std::max(keys, 100);
  CAPTURE(keys, receipt.prompt_tokens);
  CHECK(person.script->evaluated <= receipt.prompt_tokens + else_evaluated + typed);
}

TEST_CASE("I-1: typed text that no request evaluated is added to the wide window's anchor") {
  Budgets with = wide_budgets();
  with.settle = std::chrono::hours(1);  // only what is at the cursor
  Person person(lines(350), with);
  person.ask();
  person.worker.idle({});
  // The first window's anchor outgrows its increment.
  for (int key = 0; key < 80; ++key) {
    person.type(key % 4 == 3 ? "\n" : "x");
    person.ask();
  }
  person.type("a + b");
  person.ask_in_vain();
  const int before = person.script->evaluated;
  person.worker.idle({});
  CHECK(person.script->evaluated - before <= 8);
}

TEST_CASE("I-5: a keystroke ends widening within one step, at whichever step it comes") {
  Person person(lines(350));
  person.ask();
  for (int pause = 0; pause < 60; ++pause) {
    person.idle_for(pause % 4);
    CHECK(person.steps_after_stop <= 1);
    person.type("x");
    const Receipt receipt = person.ask();
    CAPTURE(pause, receipt.view);
    // what is not there yet is not waited for.
    CHECK(receipt.evaluated_tokens <= 110);
  }
}

TEST_CASE("A-4: the same text and cursor come to the same window, however fast the device was") {
  std::vector<engine::TokenId> prompt;
  for (const double factor : {0.3, 1.0, 1.04, 20.0}) {
    Budgets with = wide_budgets();
    for (auto& point : with.costs.points) point.ms *= factor;
    const auto script = Person::roomy();
    const test::ScriptedEngine measured(script);
    set_pace(with, measured, kWide);
    Person person(lines(350), with, script);
    person.ask();
    person.rest();
    person.type(" ");
    CHECK(person.ask().view == "full");
    if (prompt.empty()) prompt = person.seen.tokens;
    CHECK(person.seen.tokens == prompt);
  }
}

TEST_CASE("A-5: a jump in a file that was read costs what stands around the cursor") {
  Person person(lines(350));
  person.ask();
  person.rest();
  const std::size_t size = person.document.snapshot()->bytes().size();
  for (const std::size_t place : {size / 10, size / 3, size * 9 / 10}) {
    person.jump(place);
    const Receipt receipt = person.ask();
    CHECK(receipt.view == "short after");
    CHECK(receipt.evaluated_tokens <= 90);
    person.rest();
    person.type(" ");
    CHECK(person.ask().shown == 1);
    person.rest();
  }
}

TEST_CASE("A-4: a text over the window is shown in part, and the window stays where it is") {
  Person person(lines(900));
  person.ask();
  person.rest();
  person.type(" ");
  const Receipt receipt = person.ask();
  CHECK(receipt.view == "full");
  CHECK(receipt.shown < 0.9);
  CHECK(receipt.prompt_tokens > kWide / 2);
  CHECK(receipt.prompt_tokens < kWide + 20);
  const std::string before = person.seen.before;
  for (int line = 0; line < 5; ++line) {
    person.jump(person.cursor + 1);
    person.ask();
    person.rest();
    person.type(" ");
    person.ask();
    CHECK(person.seen.before.starts_with(before.substr(0, 1000)));
  }
}

TEST_CASE("I-5: a file gets so much CPU time for widening, and each request gives some back") {
  // Anything takes longer than a nanosecond, so idle time does one piece and then waits for a request.
  const auto views_with = [](double cpu_s_max) {
    Budgets with = wide_budgets();
    with.widening_cpu_s_max = cpu_s_max;
    Person person(lines(350), with);
    person.ask();
    std::vector<std::string> views;
    while (views.size() < 100 && (views.empty() || views.back() != "full")) {
      person.rest();
      person.type(" ");
      views.emplace_back(person.ask().view);
    }
    return views;
  };
  const std::vector<std::string> none = views_with(0), little = views_with(1e-9);
  CHECK(none == std::vector<std::string>(100, "first window"));
  CHECK(little.front() != "full");
  CHECK(little.back() == "full");
}

TEST_CASE("A-4: a model's context is the limit") {
  const auto script = std::make_shared<EngineScript>();
  script->window_tokens = 1000;
  Person person(lines(350), wide_budgets(), script);
  for (int round = 0; round < 4; ++round) {
    const Receipt receipt = person.ask();
    CHECK(receipt.prompt_tokens + 8 <= 1000);
    person.rest();
    person.type("x");
  }
  const Receipt receipt = person.ask();
  CHECK(receipt.view == "full");
  CHECK(receipt.prompt_tokens > 700);
  CHECK(receipt.shown < 0.4);
}

TEST_CASE("KV-4: without memory for a wide window the others serve, and requests never fail") {
  const int pages = GENERATE(12, 24, 60, 130, 200);
  CAPTURE(pages);
  const auto script = Person::roomy();
  script->page_count = pages;
  Person person(lines(350), wide_budgets(), script);
  for (const char* uri : {"file:///a", "file:///b", "file:///a", "file:///c"}) {
    person.uri = uri;
    for (int round = 0; round < 3; ++round) {
      const Receipt receipt = person.ask();
      CHECK((receipt.reason.empty() || receipt.prompt_tokens > 0));
      CHECK(receipt.evaluated_tokens <= 110);
      person.rest();
      person.type("x");
    }
  }
}

TEST_CASE("I-5: other documents make room for the one in use") {
  const auto script = Person::roomy();
  script->page_count = 400;
  Person person(lines(350), wide_budgets(), script);
  for (const char* uri : {"file:///a", "file:///b", "file:///c"}) {
    person.uri = uri;
    person.ask();
    person.rest();
    person.type(" ");
    CHECK(person.ask().view == "full");
  }
}

TEST_CASE(
    "A-5: a file that is opened again keeps its window, so that a jump costs only its after") {
  Person person(lines(350));
  person.ask();
  person.rest();
  person.open_again("");
  person.jump(person.cursor / 2);
  const Receipt receipt = person.ask();
  CHECK(receipt.view == "short after");
  CHECK(receipt.evaluated_tokens <= 110);
}

TEST_CASE("edits anywhere while the window widens: prompts are the text, and nobody waits") {
  const unsigned seed = GENERATE(range(1U, 1U + kSeeds));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t below) { return random() % below; };
  Person person(lines(300));
  for (int event = 0; event < 60; ++event) {
    const std::size_t size = person.document.snapshot()->bytes().size();
    CAPTURE(event);
    switch (pick(7)) {
      case 0: {
        const std::string_view text = person.document.snapshot()->bytes();
        const std::size_t line = text.find('\n', pick(size));
        person.insert_far(line == std::string_view::npos ? 0 : line + 1, "  int more = 1;\n");
        break;
      }
      case 1:
        person.jump(pick(size));
        break;
      case 2:
        person.open_again(pick(2) == 0 ? "" : "int other = 2;\n");
        break;
      default:
        person.type(pick(4) == 0 ? "\n  " : "x");
    }
    const Receipt receipt = person.ask();
    CAPTURE(receipt.view, receipt.evaluated_tokens);
    CHECK(receipt.evaluated_tokens <= 200);
    switch (pick(4)) {
      case 0:
        person.rest();
        break;
      case 1: {
        std::stop_source stop;
        const auto most = person.script->appends + static_cast<int>(pick(40));
        std::jthread watch([&](const std::stop_token& over) {
          while (!over.stop_requested() && person.script->appends < most) std::this_thread::yield();
          stop.request_stop();
        });
        person.worker.idle(stop.get_token());
        break;
      }
      default:
        break;
    }
  }
  person.rest();
  person.type(" ");
  CHECK(person.ask().shown == 1);
}
