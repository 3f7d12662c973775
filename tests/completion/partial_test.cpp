#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::Harness;
using test::says;

namespace {

constexpr char kFunction[] =
    "int sum(const int* a, int n) {\n"
    "  int s = 0;\n"
    "  for (int i = 0; i < n; ++i) {\n"
    "    if (a[i] < 0) continue;\n"
    "    s += a[i];\n"
    "  }\n"
    "  call(s, \"a;b\", f(n, [&] { return s; }));\n"
    "\n"
    "  int t = twice(s);\n"
    "  return t;\n"
    "}\n";

/// What a request is told before its answer.
struct Told {
  std::vector<Item> items;
  std::future<Outcome> answer;
};

/// The items are complete when the answer is there: both come from the engine's thread, in order.
void listen(Harness& editor, Told& told, const TextHome& home = {}) {
  Request request = editor.request();
  request.home = home;
  request.partial = [&told](const Item& item) { told.items.push_back(item); };
  told.answer = editor.submit(std::move(request));
}

/// True if something was told.
bool check_told(const Told& told, const Outcome& outcome) {
  std::string before;
  for (const Item& item : told.items) {
    CHECK(item.text.size() > before.size());
    CHECK(item.text.starts_with(before));
    before = item.text;
  }
  if (before.empty()) return false;
  INFO("told: " << before);
  if (outcome.item) INFO("answer: " << outcome.item->text);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text.starts_with(before));
  return true;
}

}  // namespace

TEST_CASE("what an answer begins with is told while the model is still writing") {
  Harness editor(says("int s = 0;\n  s += n;\n  return s;\n}\n"));
  editor.set("int sum(int n) {\n  ^\n");
  editor.script->append_gate.close();
  Told told;
  std::promise<std::string> first;
  Request request = editor.request();
  request.partial = [&, is_first = true](const Item& item) mutable {
    if (std::exchange(is_first, false)) first.set_value(item.text);
    told.items.push_back(item);
  };
  told.answer = editor.submit(std::move(request));
  std::future<std::string> heard = first.get_future();
  const auto has_come = [](auto& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  for (int step = 0; step < 64; ++step) {
    editor.script->append_gate.wait_until_reached();
    if (has_come(heard)) break;
    editor.script->append_gate.step();
  }
  REQUIRE(has_come(heard));
  CHECK(heard.get() == "int s = 0;");
  CHECK_FALSE(has_come(told.answer));
  editor.script->append_gate.open();
  const Outcome outcome = told.answer.get();
  CHECK(check_told(told, outcome));
  CHECK(outcome.item->text == "int s = 0;\n  s += n;\n  return s;");
}

TEST_CASE("nobody is told of what may still be taken back") {
  const auto told_of = [](const std::string& place, const std::string& text) {
    Harness editor(says(text));
    editor.set(place);
    Told told;
    listen(editor, told);
    const Outcome outcome = told.answer.get();
    check_told(told, outcome);
    return told.items.empty() ? std::string() : told.items.back().text;
  };
  SECTION("a line that is not whole, on a line of its own") {
    CHECK(told_of("void f() {\n  ^\n}\n", "g(); h();").empty());
  }
  SECTION("a line that stands below the cursor already") {
    CHECK(told_of("void f() {\n  int a;\n  ^\n  g(a);\n}\n", "a = 1;\n  g(a);\n  h();\n") ==
          "a = 1;");
  }
  SECTION("anything, if text follows the cursor on its line") {
    CHECK(told_of("x = f(^);\n", "a, b").empty());
  }
}

TEST_CASE(
    "a text that was told is what the answer begins with, wherever the model becomes unsure") {
  const std::string whole = kFunction;
  std::mt19937 random(7);
  int some = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t cut = random() % whole.size();
    const std::size_t end = cut + random() % (whole.size() - cut);
    auto script = says(whole.substr(cut) + "int more() { return 1; }\n");
    script->chances[random() % 120] = 0.2;
    script->chances[random() % 120] = 0.3;
    Harness editor(std::move(script));
    editor.options.stop = round % 5 == 0 ? StopRule::kLine : StopRule::kBlock;
    editor.set(whole.substr(0, cut) + "^" + (round % 2 == 0 ? "\n" : whole.substr(end)));
    Told told;
    listen(editor, told);
    const Outcome outcome = told.answer.get();
    INFO("cut " << cut << ", end " << end << ", round " << round);
    some += check_told(told, outcome) ? 1 : 0;
  }
  CHECK(some > 50);
}

TEST_CASE("what was told stays when recall knows how the text went on elsewhere") {
  const std::string whole = kFunction;
  std::mt19937 random(11);
  int some = 0, recalled = 0;
  for (int round = 0; round < 200; ++round) {
    const std::size_t cut = random() % whole.size();
    std::string rest = whole.substr(cut);
    if (round % 3 == 0 && rest.size() > 20) rest.insert(20, "other(); ");
    auto script = says(rest);
    script->chances[random() % 60] = 0.3;
    Harness editor(std::move(script));
    editor.set(whole + "\n" + whole.substr(0, cut) + "^\n");
    Told told;
    listen(editor, told, {"/p", "/p/a.cpp"});
    const Outcome outcome = told.answer.get();
    INFO("cut " << cut << ", round " << round << ", " << outcome.receipt.source);
    some += check_told(told, outcome) ? 1 : 0;
    recalled += outcome.receipt.source.starts_with("recalled") ? 1 : 0;
  }
  CHECK(some > 10);
  CHECK(recalled > 10);
}
