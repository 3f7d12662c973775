#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "daemon/completion/pace.h"
#include "daemon/completion/silence.h"
#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;
using test::Harness;
using test::says;

namespace {

std::string long_file() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "int value_" + std::to_string(i) + " = f();\n";
  return text + "int a = ^\n";
}

Request plain_request() {
  static const text::Document document("a = ");
  Request request;
  request.document = {1, "file:///a"};
  request.snapshot = document.snapshot();
  request.cursor = 4;
  request.arrived = std::chrono::steady_clock::now();
  return request;
}

}  // namespace

TEST_CASE("a newer request stops the older one's prompt within a step") {
  Harness harness(says("f();"));
  harness.set(long_file());
  harness.script->hold_gate.close();
  auto first = harness.submit();
  harness.script->hold_gate.wait_until_reached();
  harness.script->hold_gate.step();
  harness.script->hold_gate.wait_until_reached();
  auto second = harness.submit();
  CHECK(harness.script->steps == 1);
  harness.script->hold_gate.open();
  CHECK(first.get().superseded);
  const Outcome outcome = second.get();
  CHECK_FALSE(outcome.superseded);
  CHECK(outcome.item);
  // The step that was evaluated is not lost.
  CHECK(outcome.receipt.reused_tokens == harness.script->step_tokens);
}

TEST_CASE("a newer request stops the older one's generation within a token") {
  Harness harness(says("f(1, 2, 3, 4, 5, 6, 7, 8);"));
  harness.set("int a = ^\n");
  harness.script->append_gate.close();
  auto first = harness.submit();
  harness.script->append_gate.wait_until_reached();
  auto second = harness.submit();
  harness.script->append_gate.open();
  CHECK(first.get().superseded);
  const Outcome outcome = second.get();
  CHECK(outcome.item);
  CHECK(harness.script->holds == 2);
  CHECK(harness.script->appends == 1 + outcome.receipt.generated_tokens);
}

TEST_CASE("the request's own token stops it, before it starts or while it runs") {
  Harness harness(says("f(1, 2, 3, 4, 5, 6, 7, 8);"));
  harness.set("int a = ^\n");
  harness.script->append_gate.close();
  std::stop_source running;
  Request request = harness.request();
  request.stop = running.get_token();
  auto first = harness.submit(request);
  harness.script->append_gate.wait_until_reached();
  std::stop_source waiting;
  harness.set("int b = ^\n", "file:///b");
  request = harness.request("file:///b");
  request.stop = waiting.get_token();
  auto second = harness.submit(request);
  running.request_stop();
  waiting.request_stop();
  harness.script->append_gate.open();
  CHECK(first.get().superseded);
  CHECK(second.get().superseded);
  CHECK(harness.script->holds == 1);
}

TEST_CASE("requests for other documents are not superseded") {
  Harness harness(says("f();"));
  harness.set("int a = ^\n");
  harness.set("int b = ^\n", "file:///b");
  harness.script->append_gate.close();
  auto first = harness.submit();
  harness.script->append_gate.wait_until_reached();
  auto second = harness.submit("file:///b");
  harness.script->append_gate.open();
  CHECK(first.get().item);
  CHECK(second.get().item);
}

TEST_CASE("closing a document supersedes its requests") {
  Harness harness(says("f(1, 2, 3);"));
  harness.set("int a = ^\n");
  harness.script->append_gate.close();
  auto first = harness.submit();
  harness.script->append_gate.wait_until_reached();
  harness.service->close({1, "file:///a"});
  harness.script->append_gate.open();
  CHECK(first.get().superseded);
}

TEST_CASE("a full queue refuses at once") {
  auto settings = Harness::fixed_window();
  settings.requests_max = 1;
  Harness harness(says("f();"), settings);
  for (const char* uri : {"file:///a", "file:///b", "file:///c"}) harness.set("int a = ^\n", uri);
  harness.script->append_gate.close();
  auto working = harness.submit("file:///a");
  harness.script->append_gate.wait_until_reached();
  auto queued = harness.submit("file:///b");
  const Outcome refused = harness.submit("file:///c").get();
  CHECK(refused.receipt.reason == silence::kQueueFull);
  CHECK_FALSE(refused.superseded);
  harness.script->append_gate.open();
  CHECK(working.get().item);
  CHECK(queued.get().item);
}

TEST_CASE("while the model loads, requests are answered at once with the reason") {
  std::promise<void> halfway, go_on, loaded;
  CompletionService service(
      [&](const std::function<void(double)>& progress,
          std::stop_token) -> Result<std::unique_ptr<engine::Engine>> {
        progress(0.42);
        halfway.set_value();
        go_on.get_future().wait();
        return std::make_unique<test::ScriptedEngine>(says("f();"));
      },
      Harness::fixed_window(), [&] { loaded.set_value(); });
  halfway.get_future().wait();
  Outcome outcome;
  service.submit(plain_request(), [&](Outcome answer) { outcome = std::move(answer); });
  CHECK(outcome.receipt.reason == "the model is still loading (42 %)");
  CHECK_FALSE(outcome.item);
  CHECK_FALSE(outcome.superseded);
  CHECK(service.status().state == EngineState::kLoading);
  CHECK(service.status().load_progress == Approx(0.42));
  CHECK(service.status().silence.at("the model is still loading") == 1);
  go_on.set_value();
  loaded.get_future().wait();
  std::promise<Outcome> answered;
  service.submit(plain_request(), [&](Outcome answer) { answered.set_value(std::move(answer)); });
  CHECK(answered.get_future().get().item);
}

TEST_CASE("a model that cannot be loaded is every answer's reason") {
  std::promise<void> changed;
  CompletionService service(
      [](const auto&, auto) -> Result<std::unique_ptr<engine::Engine>> {
        return fail(Fault::kNotFound, "no file m.gguf", "see efimd model list");
      },
      {}, [&] { changed.set_value(); });
  changed.get_future().wait();
  Outcome outcome;
  service.submit(plain_request(), [&](Outcome answer) { outcome = std::move(answer); });
  CHECK(outcome.receipt.reason == "no model: no file m.gguf; see efimd model list");
  CHECK(service.status().state == EngineState::kFailed);
  CHECK(service.status().failure == "no file m.gguf; see efimd model list");
  service.close({1, "file:///a"});
}

TEST_CASE("the end of the service stops loading") {
  std::promise<void> started;
  bool stopped = false;
  {
    CompletionService service(
        [&](const auto&, std::stop_token stop) -> Result<std::unique_ptr<engine::Engine>> {
          std::promise<void> asked;
          const std::stop_callback on_stop(stop, [&] { asked.set_value(); });
          started.set_value();
          asked.get_future().wait();
          stopped = true;
          return fail(Fault::kStopped, "stopped");
        },
        {}, [] { FAIL("nobody is there to be told"); });
    started.get_future().wait();
  }
  CHECK(stopped);
}

TEST_CASE("the end of the service answers what is outstanding") {
  Harness harness(says("f(1, 2, 3);"));
  harness.set("int a = ^\n");
  harness.set("int b = ^\n", "file:///b");
  harness.script->append_gate.close();
  auto running = harness.submit();
  harness.script->append_gate.wait_until_reached();
  auto queued = harness.submit("file:///b");
  std::thread end([&] { harness.service.reset(); });
  harness.script->append_gate.open();
  end.join();
  const bool superseded = running.get().superseded;
  CHECK((superseded || harness.script->holds > 0));
  queued.get();
  CHECK(harness.script->sequences_open == 0);
}

TEST_CASE("many threads may ask, close and look at once") {
  Harness harness(says("f();"));
  std::vector<std::thread> threads;
  std::atomic<int> answers = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      text::Document document("int a = ;\n");
      for (int i = 0; i < 50; ++i) {
        Request request = plain_request();
        request.document = {static_cast<std::uint64_t>(t % 2), "file:///" + std::to_string(t)};
        if (!document.replace(8, 8, "x")) std::abort();
        request.snapshot = document.snapshot();
        std::stop_source stop;
        request.stop = stop.get_token();
        harness.service->submit(request, [&](const Outcome&) { ++answers; });
        if (i % 7 == 0) stop.request_stop();
        if (i % 11 == 0) harness.service->close(request.document);
        if (i % 5 == 0) harness.service->status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  harness.service.reset();
  CHECK(answers == 200);
}

TEST_CASE("documents beyond the limit lose their KV, closed ones first") {
  auto settings = Harness::fixed_window();
  settings.documents_max = 2;
  Harness harness(says("f();"), settings);
  for (const char* uri : {"file:///a", "file:///b", "file:///c"}) harness.set("int a = ^\n", uri);
  harness.ask("file:///a");
  harness.ask("file:///b");
  harness.service->close({1, "file:///b"});
  harness.ask("file:///c");
  const ServiceStatus status = harness.service->status();
  REQUIRE(status.files.size() == 2);
  CHECK(status.files[0].uri == "file:///a");
  CHECK(status.files[1].uri == "file:///c");
  CHECK(harness.script->sequences_open == 2);
}

TEST_CASE("a document that is asked for again while it is closed is not dropped for itself") {
  auto settings = Harness::fixed_window();
  settings.documents_max = 1;
  Harness harness(says("f();"), settings);
  harness.set("int a = ^\n", "file:///a");
  harness.set("int a = ^\n", "file:///b");
  harness.ask("file:///a");
  harness.service->close({1, "file:///a"});
  CHECK(harness.ask("file:///a").item);
  CHECK(harness.ask("file:///b").item);
  CHECK(harness.service->status().files.size() == 1);
}

TEST_CASE("a full KV memory is taken from the document that was used longest ago") {
  auto script = says("f();");
  Harness harness(script);
  harness.set(long_file(), "file:///a");
  harness.set(long_file(), "file:///b");
  harness.set(long_file(), "file:///c");
  const int prompt = harness.ask("file:///a").receipt.prompt_tokens;
  harness.ask("file:///b");
  script->page_count = 2 * (prompt / engine::kPageTokens + 2);
  CHECK(harness.ask("file:///c").item);
  for (const ServiceStatus::File& file : harness.service->status().files) {
    INFO(file.uri);
    CHECK((file.tokens_device == 0) == (file.uri == "file:///a"));
  }
  CHECK(harness.ask("file:///a").item);
}

TEST_CASE("a prompt that fits no KV memory is silent with its reason") {
  auto script = says("f();");
  script->page_count = 2;
  Harness harness(script);
  harness.set(long_file());
  CHECK(harness.shown() == std::string("-").append(silence::kNoRoom));
}

TEST_CASE("generation ends where the KV memory does") {
  auto script = says("1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9;");
  script->page_count = 1;
  Harness harness(script);
  harness.set("a = ^");
  const Outcome outcome = harness.ask();
  REQUIRE(outcome.item);
  CHECK(outcome.item->text.starts_with("1 + 2"));
  CHECK(outcome.receipt.prompt_tokens + outcome.receipt.generated_tokens ==
        engine::kPageTokens + 1);
}

TEST_CASE("a small window leaves room to generate") {
  auto script = says("1 + 2 + 3 + 4;");
  script->window_tokens = 64;
  Harness harness(script);
  harness.options.tokens_max = 1000;
  harness.set(long_file());
  const Outcome outcome = harness.ask();
  CHECK(outcome.receipt.prompt_tokens <= 48);
  REQUIRE(outcome.item);
  CHECK(outcome.item->text == "1 + 2 + 3 + 4;");
}

/// A device with so much room.
test::ScriptedEngine device(const std::string& kind, int window, int ample) {
  auto script = std::make_shared<test::EngineScript>();
  script->window_tokens = window;
  script->ample_tokens = ample;
  script->device_kind = kind;
  return test::ScriptedEngine(script);
}

TEST_CASE("A-4: the window follows the room that there is, and not the measured speed") {
  const auto window = [](double tokens_per_s, const engine::Engine& engine,
                         std::optional<int> wanted = {}) {
    Budgets budgets;
    budgets.costs.points = {{64, 64 * 1000 / tokens_per_s}};
    completion::set_pace(budgets, engine, wanted);
    return budgets;
  };
  const auto cpu = device("cpu", 40'000, 20'000);
  for (const double speed : {10.0, 250.0, 280.0, 1e9})
    CHECK(window(speed, cpu).wide_tokens_max == 8192);
  CHECK(window(250, device("cuda", 40'000, 20'000)).wide_tokens_max == 20'000);
  CHECK(window(250, device("cpu", 40'000, 3000)).wide_tokens_max == 3000);
  CHECK(window(250, cpu, 12'000).wide_tokens_max == 12'000);
  CHECK(window(250, device("cpu", 2048, 2048), 12'000).wide_tokens_max == 2048);
  CHECK(window(10, cpu).prompt_tokens_max == 512);
  CHECK(window(280, cpu).prompt_tokens_max == 512);
  CHECK(window(2000, cpu).prompt_tokens_max == 2048);
  CHECK(window(1e9, cpu).prompt_tokens_max == 8192);
  CHECK(window(10, cpu).near_tokens_max == 96);
  CHECK(window(2000, cpu).near_tokens_max == 192);
  CHECK(window(10, cpu, 300).prompt_tokens_max == 300);
}

TEST_CASE("A-4: a window leaves room for an increment of an eighth of it, and to generate") {
  const int room = completion::engine_window_for(8192) - 1024 - 8192 / 6;  // the last: for a head
  CHECK(completion::wide_tokens_within(room) == 8192);
}

TEST_CASE("A-4: measuring leaves no sequence behind and sets the window") {
  auto settings = Harness::fixed_window();
  settings.prompt_tokens_max = 0;
  Harness harness(says("f();"), settings);
  CHECK(harness.script->sequences_open == 0);
  CHECK(harness.script->evaluated <= 4 + 2 * (1 + 4 + 16) + 64 + 256);
  CHECK(harness.service->status().prompt_tokens_per_s > 0);
  CHECK(harness.service->status().window_tokens >= 256);
}

TEST_CASE("a device that fails its first evaluation has failed to load") {
  auto script = says("f();");
  script->hold_error = Error{Fault::kDeviceLost, "the device is gone", ""};
  auto settings = Harness::fixed_window();
  settings.prompt_tokens_max = 0;
  Harness harness(script, settings);
  CHECK(harness.service->status().state == EngineState::kFailed);
  CHECK(harness.service->status().failure == "the device is gone");
}
