// Idle work, and what was generated before, as a person at an editor meets them.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>

#include "daemon/completion/answer/worker.h"
#include "daemon/completion/documents/documents.h"
#include "daemon/completion/documents/session_memory.h"
#include "daemon/completion/pace.h"
#include "tests/completion/harness.h"

using namespace efimd;
using completion::Outcome;
using test::EngineScript;
using test::Harness;
using test::says;
using test::ScriptedPrompt;

namespace {

/// A harness whose service works in idle time, and that can wait for the end of it.
class IdleHarness {
 public:
  /// `prompt_tokens_max` as in the settings; 0: steps are measured.
  explicit IdleHarness(std::shared_ptr<EngineScript> script, int prompt_tokens_max = 2048)
      : harness(std::move(script), settings(prompt_tokens_max)) {}

  /// Asks, and waits until idle time has done all that it wants to.
  Outcome ask_and_rest(const std::string& uri = "file:///a") {
    auto answer = std::make_shared<std::promise<Outcome>>();
    harness.service->submit(harness.request(uri), [this, answer](Outcome outcome) {
      // On the engine thread: the next rest is one after this answer, not one from before it.
      {
        const std::lock_guard lock(mutex_);
        idle_ = false;
      }
      answer->set_value(std::move(outcome));
    });
    Outcome outcome = answer->get_future().get();
    std::unique_lock lock(mutex_);
    rested_.wait(lock, [&] { return idle_; });
    return outcome;
  }

 private:
  completion::CompletionService::Settings settings(int prompt_tokens_max) {
    auto made = Harness::fixed_window();
    made.prompt_tokens_max = prompt_tokens_max;
    made.background = [this] { return allowed.load(); };
    made.settle = std::chrono::milliseconds(0);
    made.on_idle = [this] {
      const std::lock_guard lock(mutex_);
      idle_ = true;
      rested_.notify_all();
    };
    return made;
  }

  std::mutex mutex_;
  std::condition_variable rested_;
  bool idle_ = false;

 public:
  std::atomic<bool> allowed = true;  ///< whether idle time is used
  Harness harness;                   ///< last: its engine thread uses all of the above
};

constexpr const char* kOpenFunction = "int f() {\n  int total = 0;\n  ^\n}\n";

}  // namespace

TEST_CASE("typing what is shown is answered from it, also after backspace") {
  Harness harness(says("return total + 1;"));
  harness.options.stop = completion::StopRule::kLine;
  harness.set(kOpenFunction);
  REQUIRE(harness.shown() == "return total + 1;");
  const int evaluated = harness.script->evaluated;
  for (const char* typed : {"r", "e", "t", "urn "}) {
    harness.type(typed);
    const Outcome outcome = harness.ask();
    REQUIRE(outcome.item);
    CHECK(outcome.receipt.source == "typed-through");
    CHECK(outcome.receipt.evaluated_tokens == 0);
  }
  CHECK(harness.shown() == "total + 1;");
  harness.erase(4);
  CHECK(harness.shown() == "urn total + 1;");
  CHECK(harness.script->evaluated == evaluated);
}

TEST_CASE("typing anything else asks the model") {
  Harness harness(says("return total + 1;"));
  harness.set(kOpenFunction);
  harness.ask();
  harness.type("x");
  CHECK(harness.ask().receipt.source == "engine");
}

TEST_CASE("a bracket that the editor closes does not stand in the way of typing through") {
  Harness harness(says("call(total, 1);"));
  harness.set(kOpenFunction);
  REQUIRE(harness.shown() == "call(total, 1);");
  harness.type("call(");
  harness.type(")");
  harness.cursors["file:///a"] -= 1;
  const Outcome outcome = harness.ask();
  CHECK(outcome.receipt.source == "typed-through");
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "total, 1);");
  CHECK(outcome.item->replace_end == outcome.item->replace_begin + 1);
}

TEST_CASE("a place that is asked about again without an edit is answered from memory") {
  Harness harness(says("return total;"));
  harness.set(kOpenFunction);
  harness.ask();
  const int holds = harness.script->holds;
  const Outcome again = harness.ask();
  CHECK(again.receipt.source == "remembered");
  REQUIRE(again.item);
  CHECK(harness.script->holds == holds);
}

TEST_CASE("a generation that a newer request stopped goes on while the text agrees") {
  auto script = std::make_shared<EngineScript>();
  script->continuation = [](const ScriptedPrompt& prompt) {
    // The line's rest after what stands before the cursor or was generated already.
    const std::string line = "return total + 1 + 2 + 3;";
    const std::size_t said = prompt.increment.size() - std::string("  ").size();
    return line.substr(said);
  };
  Harness harness(script);
  harness.set(kOpenFunction);
  harness.script->append_gate.close();
  auto older = harness.submit();
  harness.script->append_gate.wait_until_reached();
  harness.script->append_gate.step();
  harness.script->append_gate.wait_until_reached();
  harness.type("ret");
  auto newer = harness.submit();
  harness.script->append_gate.open();
  CHECK(older.get().superseded);
  const Outcome outcome = newer.get();
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "urn total + 1 + 2 + 3;");
  CHECK(outcome.receipt.evaluated_tokens <= 1);
}

TEST_CASE("the next suggestion is there when the shown one is accepted") {
  auto script = std::make_shared<EngineScript>();
  script->continuation = [](const ScriptedPrompt& prompt) {
    return prompt.increment.find("first();") == std::string::npos ? std::string("first();")
                                                                  : std::string("\n  second();");
  };
  IdleHarness idle(script);
  Harness& harness = idle.harness;
  harness.options.stop = completion::StopRule::kNone;
  harness.set(kOpenFunction);
  const Outcome shown = idle.ask_and_rest();
  REQUIRE(shown.item);
  CHECK(shown.item->text == "first();");
  harness.accept(*shown.item);
  const Outcome next = harness.ask();
  CHECK(next.receipt.source == "prefetched");
  REQUIRE(next.item);
  CHECK(next.item->text == "\n  second();");
  CHECK(next.receipt.evaluated_tokens == 0);
}

TEST_CASE(
    "A-5, A-6: idle time evaluates the spine, and a jump costs what stands behind the cursor") {
  std::string file;
  for (int i = 0; i < 40; ++i) file += "  int value_" + std::to_string(i) + " = 0;\n";
  IdleHarness idle(says("return total;"));
  Harness& harness = idle.harness;
  harness.set("^" + file);
  idle.ask_and_rest();
  harness.cursors["file:///a"] = file.find("int value_36");
  const Outcome outcome = harness.ask();
  const auto behind = test::ScriptedTokenizer().encode(file.substr(harness.cursors["file:///a"]));
  CHECK(outcome.receipt.evaluated_tokens <= static_cast<int>(behind.size()) + 8);
  CHECK(outcome.receipt.prompt_tokens > 3 * outcome.receipt.evaluated_tokens);
}

TEST_CASE("idle time takes the document first that the user came to last") {
  const auto script = std::make_shared<EngineScript>();
  test::ScriptedEngine engine(script);
  completion::Documents documents(engine, 8);
  const completion::DocumentKey first{1, "file:///a"};
  const auto* const first_state = &documents.use(first, {});
  documents.use({1, "file:///b"}, {});
  REQUIRE(documents.open_by_use().front() != first_state);
  documents.focus({1, "file:///unknown"});
  documents.focus(first);
  CHECK(documents.open_by_use().front() == first_state);
}

TEST_CASE("I-4: a file that was only opened is evaluated from its start") {
  std::string file;
  for (int i = 0; i < 40; ++i) file += "  int value_" + std::to_string(i) + " = 0;\n";
  IdleHarness idle(says("return total;"));
  Harness& harness = idle.harness;
  harness.set(file + "^");
  completion::OpenedDocument opened;
  opened.document = {1, "file:///a"};
  opened.snapshot = harness.documents.at("file:///a").snapshot();
  harness.service->open(std::move(opened));
  harness.set("^", "file:///b");
  idle.ask_and_rest("file:///b");
  const Outcome outcome = harness.ask();
  CHECK(outcome.receipt.evaluated_tokens <= 8);
  CHECK(outcome.receipt.prompt_tokens > 100);
}

TEST_CASE(
    "I-2: a place that an edit far above made stale is ready again when the user comes back") {
  std::string file;
  for (int i = 0; i < 40; ++i) file += "  int value_" + std::to_string(i) + " = 0;\n";
  IdleHarness idle(says("return total;"));
  Harness& harness = idle.harness;
  harness.set(file + "^\n" + file);
  idle.ask_and_rest();
  const std::size_t place = harness.cursors["file:///a"];
  harness.cursors["file:///a"] = 0;
  harness.type("// note\n");
  idle.ask_and_rest();
  harness.cursors["file:///a"] = place + 8;
  CHECK(harness.ask().receipt.evaluated_tokens <= 6);
}

TEST_CASE("A-11: what is shown is a draft when a fuller anchor takes over, checked in one step") {
  auto script = std::make_shared<EngineScript>();
  script->continuation = [](const ScriptedPrompt& prompt) {
    const std::string line = "return total + 1 + 2;";
    return prompt.increment.ends_with(line) ? std::string() : line;
  };
  IdleHarness idle(script);
  Harness& harness = idle.harness;
  harness.options.healing = completion::Healing::kOff;
  harness.options.stop = completion::StopRule::kNone;
  harness.set(kOpenFunction);
  idle.ask_and_rest();
  idle.allowed = false;
  Outcome shown;
  for (int i = 0; i < 30; ++i) {
    harness.type("call(a, b);\n  ");
    shown = harness.ask();
  }
  REQUIRE(shown.item);
  // The increment has grown: idle time makes an anchor that has it in its before.
  idle.allowed = true;
  CHECK(idle.ask_and_rest().receipt.source == "remembered");
  const int steps = harness.script->appends;
  const Outcome again = harness.ask();
  CHECK(again.receipt.source == "engine");
  REQUIRE(again.item);
  CHECK(again.item->text == shown.item->text);
  CHECK(again.receipt.evaluated_tokens <= 1);
  CHECK(harness.script->appends - steps <= 1);
}

TEST_CASE("nothing runs when nothing changed") {
  IdleHarness idle(says("return total;"));
  Harness& harness = idle.harness;
  harness.set(kOpenFunction);
  idle.ask_and_rest();
  const int evaluated = harness.script->evaluated;
  const Outcome again = idle.ask_and_rest();
  CHECK(again.receipt.source == "remembered");
  CHECK(harness.script->evaluated == evaluated);
}

TEST_CASE("where the machine is to save power, nothing runs in the background") {
  std::string file;
  for (int i = 0; i < 40; ++i) file += "  int value_" + std::to_string(i) + " = 0;\n";
  IdleHarness idle(says("return total;"));
  Harness& harness = idle.harness;
  idle.allowed = false;
  harness.set("^" + file);
  const Outcome saving = idle.ask_and_rest();
  const auto appended = [&] { return harness.script->appends.load(); };
  CHECK(harness.script->evaluated == saving.receipt.evaluated_tokens + appended());
  // The same once the machine is to save no power: the file after the cursor is evaluated.
  idle.allowed = true;
  const int evaluated = harness.script->evaluated;
  idle.ask_and_rest();
  CHECK(harness.script->evaluated > evaluated + 100);
}

TEST_CASE("the KV of a document goes back once it was closed for long enough, where it can") {
  auto script = says("f();");
  script->gives_back = true;
  script->parts_to_give_back = 3;
  auto settings = Harness::fixed_window();
  settings.closed_kept = std::chrono::milliseconds(0);
  Harness harness(script, settings);
  for (const char* uri : {"file:///a", "file:///b"}) {
    harness.set("int a = ^\n", uri);
    harness.ask(uri);
  }
  script->give_back_gate.close();
  harness.service->close({1, "file:///b"});
  script->give_back_gate.wait_until_reached();
  CHECK(script->sequences_open == 1);

  // A request comes between two parts, and what is left goes after it.
  auto answer = harness.submit(harness.request("file:///a"));
  script->give_back_gate.step();
  CHECK(answer.get().item);
  script->give_back_gate.wait_until_reached();
  CHECK(script->parts_to_give_back == 2);
  script->give_back_gate.open();
  CHECK(harness.ask("file:///b").item);
  const completion::ServiceStatus status = harness.service->status();
  REQUIRE(status.files.size() == 2);
  CHECK(status.files[1].hits == 0);
}

TEST_CASE("the KV of a document that was closed a moment ago stays") {
  auto script = says("f();");
  script->gives_back = true;
  script->give_back_gate.close();
  Harness harness(script);
  for (const char* uri : {"file:///a", "file:///b"}) {
    harness.set("int a = ^\n", uri);
    harness.ask(uri);
  }
  harness.service->close({1, "file:///b"});
  CHECK(harness.ask("file:///a").item);
  CHECK(script->sequences_open == 2);
  script->give_back_gate.open();
}

TEST_CASE("where the CPU stands in for a device, that is tried again even if none is given back") {
  for (const auto release_after : {std::chrono::seconds(0), std::chrono::seconds(3600)}) {
    auto script = says("f();");
    script->stands_in = true;
    std::promise<void> released;
    script->on_release = [&released, once = false]() mutable {
      if (!std::exchange(once, true)) released.set_value();
    };
    auto settings = Harness::fixed_window();
    settings.release_after = release_after;
    settings.retry_after = std::chrono::seconds(0);
    Harness harness(script, settings);
    harness.set("int a = ^\n");
    harness.ask();
    CHECK(released.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready);
  }
}

TEST_CASE("what steps cost is measured again once another device has taken over") {
  IdleHarness idle(says("f();"), 0);
  idle.allowed = false;
  Harness& harness = idle.harness;
  harness.set("int a = ^\n");
  const auto holds_of_answer = [&] {
    const int before = harness.script->holds;
    harness.type("b");
    idle.ask_and_rest();
    return harness.script->holds - before;
  };
  const int usual = holds_of_answer();
  CHECK(holds_of_answer() == usual);
  harness.script->device = 1;
  CHECK(holds_of_answer() > usual + 2);
  CHECK(holds_of_answer() == usual);
}
