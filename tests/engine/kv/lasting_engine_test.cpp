// Devices that fail or are released under an engine whose sequences stay.
#include "engine/lasting_engine.h"

#include <catch2/catch.hpp>

#include "engine/local_engine.h"
#include "tests/support/fake_backend.h"

namespace efimd::test {
namespace {

using engine::LastingEngine;
using engine::LocalEngine;
using engine::TokenId;

/// Devices one after the other; each is told when it was lost.
struct Devices {
  std::vector<FakeBackend*> opened;
  std::vector<std::string> lost;
  std::size_t devices = 2;  ///< that there are

  Result<std::unique_ptr<engine::Engine>> open(const Error* error) {
    if (error != nullptr) lost.push_back(error->what);
    if (lost.size() >= devices) return fail(Fault::kNotFound, "no device is left");
    FakeBackend::Options of;
    if (error != nullptr) of.kind = "cpu", of.page_count = 8;
    auto backend = std::make_unique<FakeBackend>(of);
    opened.push_back(backend.get());
    const engine::ModelFacts facts{
        .digest = {}, .layers = 2, .vocabulary = 61, .context_tokens = 512};
    engine::EngineOptions options;
    return LocalEngine::make(facts, nullptr, std::move(backend), options)
        .map([](std::unique_ptr<LocalEngine> made) -> std::unique_ptr<engine::Engine> {
          return made;
        });
  }
};

std::unique_ptr<LastingEngine> engine_over(
    Devices& devices, std::chrono::seconds retry_after = LastingEngine::kRetryAfter) {
  auto engine = LastingEngine::make(
      nullptr, [&](const Error* lost) { return devices.open(lost); }, nullptr, retry_after);
  REQUIRE(engine);
  return *std::move(engine);
}

const std::vector<TokenId> kPrompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4};

void check_logits(const LastingEngine& engine, engine::SequenceId sequence) {
  const auto held = engine.held(sequence);
  const auto wanted = FakeBackend::logits_behind(held, {});
  const auto got = engine.logits(sequence, 0);
  CHECK(std::vector<float>(got.begin(), got.end()) == wanted);
}

}  // namespace

TEST_CASE("a prompt whose device is lost, at whatever operation, is answered from the next") {
  for (int operations = 0; operations < 30; ++operations) {
    INFO("after " << operations << " operations");
    Devices devices;
    const auto engine = engine_over(devices);
    devices.opened[0]->operations_until_failure = operations;
    const auto sequence = engine->open_sequence();
    REQUIRE(engine->prefill(sequence, kPrompt, {}));
    check_logits(*engine, sequence);
    if (operations < 20) CHECK(devices.lost.size() == 1);
  }
}

TEST_CASE("a device lost between generated tokens: the next one goes on behind the same text") {
  Devices devices;
  const auto engine = engine_over(devices);
  const auto sequence = engine->open_sequence();
  const auto other = engine->open_sequence();
  REQUIRE(engine->prefill(sequence, kPrompt, {}));
  REQUIRE(engine->prefill(other, std::span(kPrompt).first(7), {}));
  REQUIRE(engine->append(sequence, 7));
  devices.opened[0]->operations_until_failure = 0;
  REQUIRE(engine->append(sequence, 8));
  CHECK(devices.lost.size() == 1);
  CHECK(engine->held(sequence).size() == kPrompt.size() + 2);
  check_logits(*engine, sequence);
  REQUIRE(engine->append(other, 1));
  CHECK(engine->held(other).size() == 8);
  check_logits(*engine, other);
  const auto copy = engine->fork(sequence);
  REQUIRE(copy);
  check_logits(*engine, *copy);
}

TEST_CASE(
    "a step whose text must be evaluated again ends when it is stopped, and forgets nothing") {
  Devices devices;
  const auto engine = engine_over(devices);
  const auto sequence = engine->open_sequence();
  REQUIRE(engine->prefill(sequence, kPrompt, {}));
  engine->release_device();
  const TokenId next = 7;
  const engine::BatchItem item{.sequence = sequence, .tokens = {&next, 1}, .logits_rows = 1};
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = engine->step({&item, 1}, stop.get_token());
  REQUIRE(!stopped);
  CHECK(stopped.error().fault == Fault::kStopped);
  CHECK(devices.opened.back()->steps == 0);
  CHECK(engine->held(sequence).size() == kPrompt.size());
  REQUIRE(engine->step({&item, 1}, {}));
  check_logits(*engine, sequence);
}

TEST_CASE(
    "when the last device fails its error is the caller's, and nothing that was held is "
    "forgotten") {
  Devices devices;
  devices.devices = 1;
  const auto engine = engine_over(devices);
  const auto sequence = engine->open_sequence();
  REQUIRE(engine->prefill(sequence, kPrompt, {}));
  devices.opened[0]->operations_until_failure = 0;
  const auto lost = engine->append(sequence, 1);
  REQUIRE(!lost);
  CHECK(lost.error().fault == Fault::kDeviceLost);
  CHECK(engine->held(sequence).size() == kPrompt.size());
}

TEST_CASE("a released device is opened by the next request, which evaluates what was held") {
  Devices devices;
  const auto engine = engine_over(devices);
  const auto sequence = engine->open_sequence();
  REQUIRE(engine->prefill(sequence, kPrompt, {}));
  engine->release_device();
  CHECK(engine->kv_usage().used_bytes == 0);
  CHECK(engine->device_kind() == "fake");
  CHECK(engine->held(sequence).size() == kPrompt.size());
  CHECK(devices.opened.size() == 1);
  REQUIRE(engine->append(sequence, 2));
  CHECK(devices.opened.size() == 2);
  CHECK(devices.lost.empty());
  check_logits(*engine, sequence);
}

TEST_CASE("a device that failed is tried again, a while later and when nothing is to be done") {
  for (const bool later : {false, true}) {
    Devices devices;
    const auto engine =
        engine_over(devices, later ? std::chrono::seconds(0) : LastingEngine::kRetryAfter);
    const auto sequence = engine->open_sequence();
    devices.opened[0]->operations_until_failure = 0;
    CHECK_FALSE(engine->stands_in());
    const int window = engine->window_tokens();
    REQUIRE(engine->prefill(sequence, kPrompt, {}));
    CHECK(engine->device_kind() == "cpu");
    CHECK(engine->stands_in());
    engine->release_device();
    REQUIRE(engine->append(sequence, 2));
    CHECK(engine->stands_in() != later);
    // The room is that of the device in use, also when it grows again.
    CHECK(engine->window_tokens() == (later ? window : 8 * engine::kPageTokens));
    CHECK(window > 8 * engine::kPageTokens);
    CHECK(engine->device_kind() == (later ? "fake" : "cpu"));
    CHECK(devices.opened.size() == (later ? 3 : 2));
    check_logits(*engine, sequence);
  }
}

}  // namespace efimd::test
