#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>

#include "daemon/completion/answer/worker.h"
#include "daemon/completion/silence.h"
#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::Harness;
using test::says;

namespace {

const std::string kFile =
    "#include <vector>\n\nint sum(const std::vector<int>& values) {\n  int result = 0;\n"
    "  for (int value : values) {\n    result += value;\n  }\n  return result;\n}\n\n"
    "int main() {\n  int a = ^\n  return a;\n}\n";

std::string no_item(std::string_view reason) { return std::string("-").append(reason); }

}  // namespace

TEST_CASE("a request is answered with an item at the cursor and a receipt that adds up") {
  Harness harness(says("sum({1, 2});\n  return"));
  harness.set(kFile);
  const Outcome outcome = harness.ask();
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "sum({1, 2});");
  CHECK(outcome.item->replace_begin == harness.cursors["file:///a"]);
  CHECK(outcome.item->replace_end == harness.cursors["file:///a"]);
  CHECK_FALSE(outcome.superseded);
  const Receipt& receipt = outcome.receipt;
  CHECK(receipt.reason.empty());
  CHECK(receipt.source == "engine");
  CHECK(receipt.event == Event::kOpen);
  CHECK(receipt.prompt_tokens > 50);
  CHECK(receipt.reused_tokens == 0);
  CHECK(receipt.evaluated_tokens == receipt.prompt_tokens);
  CHECK(receipt.generated_tokens > 3);
  CHECK(receipt.queue_ms >= 0);
  CHECK(receipt.first_token_ms >= receipt.queue_ms);
  CHECK(receipt.total_ms >= receipt.first_token_ms);
}

TEST_CASE("a model that failed is loaded again for a request once its cause may be gone") {
  const auto script = says("1;");
  bool there = false, changed = false;
  int loads = 0;
  CompletionService::Settings settings = Harness::fixed_window();
  settings.may_load_again = [&] { return std::exchange(changed, false); };
  Harness harness(script, settings, [&]() -> Result<std::unique_ptr<engine::Engine>> {
    ++loads;
    if (!there) return fail(Fault::kNotFound, "x.gguf: not there");
    return std::make_unique<test::ScriptedEngine>(script);
  });
  harness.set("a = ^\n");
  CHECK(harness.shown() == "-no model: x.gguf: not there");
  there = true;
  CHECK(harness.shown() == "-no model: x.gguf: not there");
  CHECK(loads == 1);
  changed = true;
  CHECK(harness.shown() == "1;");
  CHECK(loads == 2);
  CHECK(harness.service->status().state == EngineState::kReady);
}

TEST_CASE("the script sees the text around the cursor") {
  auto script = says("");
  std::string seen;
  script->continuation = [&](const test::ScriptedPrompt& prompt) {
    seen = prompt.before + prompt.increment + "^" + prompt.after;
    return std::string();
  };
  Harness harness(script);
  harness.set("a = 1\nb = ^\nc = 3\n");
  harness.ask();
  harness.service.reset();
  CHECK(seen == "a = 1\nb = ^c = 3\n");
}

TEST_CASE("a typed character evaluates a few tokens, and so does deleting it") {
  Harness harness(says("sum();"));
  harness.set(kFile);
  harness.ask();
  harness.type("x");
  Outcome outcome = harness.ask();
  CHECK(outcome.receipt.event == Event::kType);
  CHECK(outcome.receipt.evaluated_tokens <= 2);
  CHECK(outcome.receipt.reused_tokens + outcome.receipt.evaluated_tokens ==
        outcome.receipt.prompt_tokens);
  harness.erase(1);
  outcome = harness.ask();
  CHECK(outcome.receipt.event == Event::kDelete);
  CHECK(outcome.receipt.evaluated_tokens <= 2);
}

TEST_CASE("Enter evaluates a few tokens") {
  Harness harness(says("f();"));
  harness.set(kFile);
  harness.ask();
  harness.type("1;\n  ");
  harness.ask();
  harness.type("\n  ");
  const Outcome outcome = harness.ask();
  CHECK(outcome.receipt.event == Event::kNewline);
  CHECK(outcome.receipt.evaluated_tokens <= 3);
}

TEST_CASE("A-7: an accepted suggestion is not evaluated again") {
  Harness harness(says("sum({1, 2, 3, 4}) + value;"));
  harness.set(kFile);
  Outcome outcome = harness.ask();
  REQUIRE(outcome.item);
  const int generated = outcome.receipt.generated_tokens;
  REQUIRE(generated > 10);
  harness.accept(*outcome.item);
  outcome = harness.ask();
  CHECK(outcome.receipt.event == Event::kAccept);
  CHECK(outcome.receipt.evaluated_tokens <= 2);
  CHECK(outcome.receipt.reused_tokens >= generated);
}

TEST_CASE("A-7: a suggestion accepted after a superseded request is not evaluated again") {
  Harness harness(says("sum({1, 2, 3, 4}) + value;"));
  harness.set(kFile);
  harness.script->append_gate.close();
  auto first = harness.submit();
  for (int i = 0; i < 6; ++i) {
    harness.script->append_gate.wait_until_reached();
    harness.script->append_gate.step();
  }
  harness.script->append_gate.wait_until_reached();
  harness.type("sum({");
  auto second = harness.submit();
  harness.script->append_gate.open();
  CHECK(first.get().superseded);
  CHECK(second.get().receipt.evaluated_tokens <= 1);
}

TEST_CASE("a jump back finds its pages") {
  Harness harness(says("f();"));
  harness.set(kFile);
  const int cold = harness.ask().receipt.evaluated_tokens;
  const std::size_t place = harness.cursors["file:///a"];
  harness.cursors["file:///a"] = 60;
  CHECK(harness.ask().receipt.event == Event::kJump);
  harness.cursors["file:///a"] = place;
  const Outcome outcome = harness.ask();
  CHECK(outcome.receipt.event == Event::kJump);
  CHECK(outcome.receipt.evaluated_tokens < cold / 2);
}

TEST_CASE("switching documents is an event, and each keeps its own KV") {
  Harness harness(says("f();"));
  harness.set(kFile, "file:///a");
  harness.set("int other = ^;\n", "file:///b");
  harness.ask("file:///a");
  CHECK(harness.ask("file:///b").receipt.event == Event::kOpen);
  const Outcome outcome = harness.ask("file:///a");
  CHECK(outcome.receipt.event == Event::kSwitch);
  CHECK(outcome.receipt.evaluated_tokens <= 1);
  CHECK(harness.ask("file:///a").receipt.event == Event::kRepeat);
}

TEST_CASE("every silence has its reason, which the status counts") {
  const auto reason_for = [](const std::string& text, const std::string& source,
                             StopRule stop = StopRule::kBlock) {
    Harness harness(says(text));
    harness.options.stop = stop;
    harness.set(source);
    const std::string shown = harness.shown();
    const auto silences = harness.service->status().silence;
    CHECK(silences.size() == 1);
    CHECK(std::string("-").append(silences.begin()->first) == shown);
    CHECK(silences.begin()->second == 1);
    return shown;
  };
  CHECK(reason_for("", "a^") == no_item(silence::kNothing));
  CHECK(reason_for("\nb();", "a();^", StopRule::kLine) == no_item(silence::kNothingOnLine));
  CHECK(reason_for("\nb();", "a();^") == no_item(silence::kNothingOnLine));
  CHECK(reason_for("   ", "a^", StopRule::kNone) == no_item(silence::kOnlyBlanks));
  CHECK(reason_for("b();", "a {\n  ^\n  b();\n}") == no_item(silence::kRepeats));
  CHECK(reason_for("\x01\x02", "a^") == no_item(silence::kUnreadable));
}

TEST_CASE("a budget of no tokens is no_item with its reason") {
  Harness harness(says("b"));
  harness.options.tokens_max = 0;
  harness.set("a^");
  CHECK(harness.shown() == no_item(silence::kNoBudget));
}

TEST_CASE("no more tokens than the budget are generated") {
  Harness harness(says("1 + 2 + 3 + 4 + 5 + 6;"));
  harness.options.tokens_max = 4;
  harness.set("a = ^");
  const Outcome outcome = harness.ask();
  CHECK(outcome.receipt.generated_tokens == 4);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "1 + 2");
}

TEST_CASE("a model that cannot fill in says so") {
  auto script = says("b");
  script->tokenizer.order = engine::FimOrder::kNone;
  Harness harness(script);
  harness.set("a^");
  CHECK(harness.shown().starts_with(no_item(silence::kCannotFillIn) + ": "));
  CHECK(harness.service->status().silence.at(std::string(silence::kCannotFillIn)) == 1);
}

TEST_CASE("a device that fails fails the request, and the next one is answered") {
  Harness harness(says("b();"));
  harness.set("a = ^");
  harness.script->hold_error = Error{Fault::kDeviceLost, "the device is gone", ""};
  CHECK(harness.shown() == no_item(silence::kEngineFailed) + ": the device is gone");
  harness.script->hold_error.reset();
  harness.script->append_error = Error{Fault::kNoMemory, "out of memory", ""};
  CHECK(harness.shown() == no_item(silence::kEngineFailed) + ": out of memory");
  harness.script->append_error.reset();
  CHECK(harness.shown() == "b();");
}

TEST_CASE("stop rules and shaping use the place of the request") {
  Harness harness(says("x, y);\nmore();"));
  harness.set("foo(^);\n");
  const Outcome outcome = harness.ask();
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "x, y);");
  CHECK(outcome.item->replace_end == 6);
}

TEST_CASE("tokens that are no text end the generation") {
  auto script = says("");
  script->token_continuation = [](const test::ScriptedPrompt&) {
    const test::ScriptedTokenizer tokenizer;
    return std::vector<engine::TokenId>{'a', 'b', tokenizer.fim().prefix, 'c'};
  };
  Harness harness(script);
  harness.set("x = ^");
  CHECK(harness.shown() == "ab");
}

TEST_CASE("an incomplete code point at the budget's end is not shown") {
  Harness harness(says("caf\xC3\xA9"));
  harness.options.tokens_max = 4;
  harness.set("x = ^");
  CHECK(harness.shown() == "caf");
}

TEST_CASE("a cursor past the end is at the end") {
  Harness harness(says("b;"));
  harness.set("a = ^");
  Request request = harness.request();
  request.cursor = 1000;
  const Outcome outcome = harness.submit(request).get();
  REQUIRE(outcome.item);
  CHECK(outcome.item->replace_begin == 4);
}

TEST_CASE("a document that is closed and opened again unchanged keeps its anchor") {
  Harness harness(says("f();"));
  harness.set(kFile);
  harness.ask();
  harness.service->close({1, "file:///a"});
  harness.set(kFile);
  const Outcome outcome = harness.ask();
  CHECK(outcome.receipt.event == Event::kOpen);
  CHECK(outcome.receipt.evaluated_tokens <= 1);
  CHECK(harness.service->status().files.at(0).hits == 1);
}

TEST_CASE("the text of a document that is closed is let go of") {
  Harness harness(says("f();"));
  harness.set(kFile);
  harness.ask();
  const std::weak_ptr<const text::Snapshot> text = harness.documents.at("file:///a").snapshot();
  harness.service->close({1, "file:///a"});
  harness.documents.erase("file:///a");
  harness.set(kFile, "file:///b");
  harness.ask("file:///b");
  CHECK(text.expired());
  CHECK(harness.service->status().files.at(0).anchors > 0);
}

TEST_CASE("a document that was changed while it was closed gets its own text") {
  auto script = says("");
  std::string seen;
  script->continuation = [&](const test::ScriptedPrompt& prompt) {
    seen = prompt.before + prompt.increment;
    return std::string("f();");
  };
  Harness harness(script);
  harness.set("one\ntwo\na = ^\n");
  harness.ask();
  harness.service->close({1, "file:///a"});
  harness.set("ONE\ntwo\na = ^\n");
  harness.ask();
  harness.service.reset();
  CHECK(seen == "ONE\ntwo\na = ");
}

TEST_CASE("a model that was trained to see the path of a file sees it in every prompt") {
  auto script = says("f();");
  script->tokenizer.files.place = engine::FimFiles::Place::kBeforePrefix;
  script->tokenizer.files.before_path = "#";
  script->tokenizer.files.after_path = "\n";
  std::string head;
  std::size_t prompt_tokens = 0;
  script->continuation = [&](const test::ScriptedPrompt& prompt) {
    head = prompt.head;
    prompt_tokens = prompt.tokens.size();
    return std::string("f();");
  };
  completion::CompletionService::Settings settings = Harness::fixed_window();
  settings.prompt_tokens_max = 64;
  Harness harness(script, settings);
  const auto ask = [&] {
    completion::Request request = harness.request();
    request.file = {"project", "src/a.c"};
    return harness.submit(std::move(request)).get();
  };
  harness.set("int a;\n" + std::string(2000, ';') + "\nint b = ^\n" + std::string(2000, ';'));
  ask();
  CHECK(head == "#src/a.c\n");
  CHECK(prompt_tokens <= 64);
  harness.type("x");
  CHECK(ask().receipt.evaluated_tokens <= 2);
  harness.service->close({1, "file:///a"});
  harness.set("int a;\nint b = ^\n");
  ask();
  harness.service.reset();
  CHECK(head == "#src/a.c\n");
}

TEST_CASE("A-10: a first answer's budget holds the path, too, and at least half of it is text") {
  constexpr int kNear = 120, kFraming = 4;
  Budgets budgets;
  budgets.prompt_tokens_max = 2048;
  budgets.near_tokens_max = kNear;
  budgets.costs.points = {{1, 10}, {64, 100}, {256, 400}};
  std::string text;
  for (int i = 0; i < 100; ++i) text += "a = 1;\n";
  const text::Document document(text);
  for (const std::size_t path_bytes : {30, 190}) {
    const auto script = says("f();");
    script->tokenizer.files.place = engine::FimFiles::Place::kBeforePrefix;
    Worker worker(std::make_unique<test::ScriptedEngine>(script), {budgets, 4});
    Request request;
    request.document = {1, "file:///a"};
    request.file.path = std::string(path_bytes, 'a');
    request.snapshot = document.snapshot();
    request.cursor = text.size() / 2;
    const Answer answer = worker.serve(Job(request, [](const Outcome&) {}));
    REQUIRE(answer.plan);
    CHECK(answer.plan->taken.starts_with("near"));
    const auto head = static_cast<int>(
        prompt::path_head(request.file, test::ScriptedTokenizer(script->tokenizer)).size());
    const int shown = answer.outcome.receipt.prompt_tokens - head - kFraming;
    CAPTURE(head, shown);
    CHECK(shown <= std::max(kNear - head, kNear / 2));
    CHECK(shown > kNear / 2 - 10);
  }
}

TEST_CASE("the status shows documents, events and latencies") {
  Harness harness(says("f();"));
  harness.set(kFile);
  harness.ask();
  for (int i = 0; i < 3; ++i) {
    harness.type("x");
    harness.ask();
  }
  const ServiceStatus status = harness.service->status();
  CHECK(status.state == EngineState::kReady);
  CHECK(status.device_kind == "scripted");
  CHECK(status.window_tokens == 2048);
  REQUIRE(status.files.size() == 1);
  CHECK(status.files[0].uri == "file:///a");
  CHECK(status.files[0].open);
  CHECK(status.files[0].anchors == 1);
  CHECK(status.files[0].tokens_device > 50);
  CHECK(status.files[0].hits == 3);
  CHECK(status.files[0].misses == 1);
  CHECK(status.kv.used_bytes > 0);
  REQUIRE(status.events.contains("type"));
  CHECK(status.events.at("type").count == 3);
  CHECK(status.events.at("type").evaluated_mean <= 2);
  CHECK(status.events.at("type").reused_mean > 50);
  CHECK(status.events.at("type").first_token_ms_p50 > 0);
  CHECK(status.events.at("type").first_token_ms_p95 >= status.events.at("type").first_token_ms_p50);
}

TEST_CASE(
    "a keystroke is answered while what was forgotten is overwritten, which is told at its end") {
  Harness harness(says("1;"));
  harness.set(kFile);
  harness.ask();
  harness.script->parts_to_overwrite = 3;
  harness.script->overwrite_gate.close();
  std::promise<void> overwritten;
  harness.service->forget({""}, [&] { overwritten.set_value(); });
  auto told = overwritten.get_future();
  harness.script->overwrite_gate.wait_until_reached();

  auto answer = harness.submit();
  harness.script->overwrite_gate.step();
  CHECK(answer.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  CHECK(harness.script->parts_to_overwrite == 2);
  CHECK(told.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);

  harness.script->overwrite_gate.open();
  CHECK(told.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  CHECK(harness.script->parts_to_overwrite == 0);
}

TEST_CASE("a service that ends overwrites all that was forgotten before") {
  Harness harness(says("1;"));
  harness.set(kFile);
  harness.ask();
  harness.script->parts_to_overwrite = 3;
  bool told = false;
  harness.service->forget({""}, [&] { told = true; });
  harness.service.reset();
  CHECK(told);
  CHECK(harness.script->parts_to_overwrite == 0);
}
