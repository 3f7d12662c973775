#include "engine/kv/store_tier.h"

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>

#include "engine/local_engine.h"
#include "tests/engine/kv/fake_store.h"
#include "tests/support/fake_backend.h"

using namespace efimd;
using namespace efimd::engine;
using efimd::test::FakeBackend;
using efimd::test::FakeStore;
using namespace std::chrono_literals;

namespace {

constexpr SourceId kA{1}, kB{2};

std::vector<TokenId> tokens(int count, int first = 0) {
  std::vector<TokenId> list(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < list.size(); ++at) list[at] = (first + static_cast<int>(at)) % 61;
  return list;
}

/// An engine over a fake device; more of them share a store, as daemons do one after another.
struct Bench {
  explicit Bench(std::shared_ptr<FakeStore> store_, int pages = 16) : store(std::move(store_)) {
    options.page_count = pages;
    EngineOptions of_engine;
    of_engine.store = store;
    auto made = std::make_unique<FakeBackend>(options);
    device = made.get();
    engine =
        LocalEngine::make(
            {.layers = options.layers, .vocabulary = options.vocabulary, .context_tokens = 4096},
            nullptr, std::move(made), of_engine)
            .value();
  }
  /// Holds and checks the logits against an evaluation of everything.
  PromptCost prefill(const std::vector<TokenId>& prompt, SourceId source = kA) {
    const SequenceId sequence = engine->open_sequence();
    engine->set_source(sequence, source);
    const auto cost = engine->prefill(sequence, prompt, {});
    REQUIRE(cost.has_value());
    const auto logits = engine->logits(sequence);
    CHECK(std::vector<float>(logits.begin(), logits.end()) ==
          FakeBackend::logits_behind(prompt, options));
    engine->close_sequence(sequence);
    CHECK(engine->pool().check() == "");
    return *cost;
  }
  void write_all() {
    while (engine->write_behind(Leaving::kNo) == WriteBehind::kWrote) {
    }
  }

  FakeBackend::Options options;
  std::shared_ptr<FakeStore> store;
  std::unique_ptr<LocalEngine> engine;
  FakeBackend* device = nullptr;  ///< the engine's
};

}  // namespace

TEST_CASE("the next engine finds what the last one wrote, and evaluates only the rest") {
  const auto store = std::make_shared<FakeStore>();
  const std::vector<TokenId> prompt = tokens(5 * kPageTokens + 7);
  {
    Bench bench(store);
    CHECK(bench.prefill(prompt).restored == 0);
    bench.write_all();
  }
  CHECK(store->pages.size() == 5);
  Bench bench(store);
  CHECK(bench.engine->resident(prompt) == 5 * kPageTokens);
  const PromptCost cost = bench.prefill(prompt);
  CHECK(cost.reused == 5 * kPageTokens);
  CHECK(cost.restored == 5 * kPageTokens);
  CHECK(cost.evaluated == 7);
  CHECK(bench.prefill(prompt).restored == 0);  // they are used a second time
}

TEST_CASE("pages are written parents first, each once, with whose they are") {
  const auto store = std::make_shared<FakeStore>();
  Bench bench(store);
  bench.prefill(tokens(4 * kPageTokens), kA);
  bench.write_all();
  bench.prefill(tokens(3 * kPageTokens), kB);
  bench.write_all();
  REQUIRE(store->written.size() == 4);
  for (std::size_t at = 1; at < 4; ++at)
    CHECK(store->pages.at(store->written[at]).parent == store->written[at - 1]);
  CHECK_FALSE(store->pages.at(store->written[0]).parent);
  CHECK(store->pages.at(store->written[0]).sources == std::vector{kA, kB});
  CHECK(store->pages.at(store->written[3]).sources == std::vector{kA});
}

TEST_CASE("what a prompt shows of another document goes with that, and all that follows it") {
  const auto store = std::make_shared<FakeStore>();
  Bench bench(store);
  const std::vector<TokenId> prompt = tokens(3 * kPageTokens);
  const SequenceId sequence = bench.engine->open_sequence();
  bench.engine->set_source(sequence, kA);
  bench.engine->set_shown(sequence, std::array{kB});
  REQUIRE(bench.engine->prefill(sequence, prompt, {}).has_value());
  bench.engine->close_sequence(sequence);
  bench.write_all();
  REQUIRE(store->written.size() == 3);
  CHECK(store->pages.at(store->written[0]).sources == std::vector{kA, kB});
  CHECK(store->pages.at(store->written[1]).sources == std::vector{kA});
  bench.engine->forget(kB);
  CHECK(bench.engine->pool().pages_used() == 0);
  CHECK(bench.engine->pool().check() == "");
}

TEST_CASE("what shows another document and must not be stored is not stored as that document's") {
  const auto store = std::make_shared<FakeStore>();
  Bench bench(store);
  const SequenceId sequence = bench.engine->open_sequence();
  bench.engine->set_shown(sequence, std::array{kB});
  REQUIRE(bench.engine->prefill(sequence, tokens(2 * kPageTokens), {}).has_value());
  bench.engine->close_sequence(sequence);
  bench.write_all();
  CHECK(store->written.empty());
  // It belongs to nobody, so it goes with whatever is forgotten.
  bench.engine->forget(kA);
  CHECK(bench.engine->pool().pages_used() == 0);
}

TEST_CASE("the device is told in front of the pages that it is then asked for, and of no others") {
  Bench bench(std::make_shared<FakeStore>());
  bench.prefill(tokens(4 * kPageTokens), kA);
  bench.write_all();
  CHECK(bench.device->expected.size() == 4);
  CHECK(bench.device->expected == bench.device->read);
  bench.device->expected.clear();
  bench.prefill(tokens(3 * kPageTokens), kB);  // the store holds them
  bench.write_all();
  CHECK(bench.device->expected.empty());
}

TEST_CASE("KV-6: what only an excluded document holds is never written, evicted or not") {
  const auto store = std::make_shared<FakeStore>();
  Bench bench(store, 8);
  const std::vector<TokenId> shared = tokens(2 * kPageTokens);
  std::vector<TokenId> secret = shared;
  const std::vector<TokenId> rest = tokens(3 * kPageTokens, 40);
  secret.insert(secret.end(), rest.begin(), rest.end());
  bench.prefill(secret, SourceId::kNone);
  bench.write_all();
  CHECK(store->pages.empty());
  // A document that may be stored begins alike: only what it holds itself is written.
  bench.prefill(shared, kA);
  bench.write_all();
  CHECK(store->pages.size() == 2);
  bench.prefill(tokens(8 * kPageTokens, 17), SourceId::kNone);
  bench.prefill(tokens(8 * kPageTokens, 23), SourceId::kNone);
  CHECK(store->pages.size() == 2);
}

TEST_CASE("pages that are evicted before idle time came are written then") {
  const auto store = std::make_shared<FakeStore>();
  Bench bench(store, 8);
  const std::vector<TokenId> first = tokens(6 * kPageTokens);
  bench.prefill(first);
  bench.prefill(tokens(8 * kPageTokens, 17), SourceId::kNone);
  CHECK(store->pages.size() == 6);
  CHECK(bench.prefill(first).evaluated <= 1);
}

TEST_CASE("restore brings pages back in idle time, and a stop ends it") {
  const auto store = std::make_shared<FakeStore>();
  const std::vector<TokenId> prompt = tokens(6 * kPageTokens);
  {
    Bench bench(store);
    bench.prefill(prompt);
    bench.write_all();
  }
  Bench bench(store);
  store->answers_left = 2;
  CHECK(bench.engine->restore(prompt, kA, {}).value() == 2 * kPageTokens);
  CHECK(store->last_patience == StoreTier::kIdlePatience);
  store->answers_left = 100;
  std::stop_source stop;
  stop.request_stop();
  CHECK(bench.engine->restore(prompt, kA, stop.get_token()).value() == 2 * kPageTokens);
  CHECK(bench.engine->restore(prompt, kA, {}).value() == 6 * kPageTokens);
  CHECK(store->wanted.size() == 4);
  store->answers_left = 0;  // the keystroke needs no disk any more
  const PromptCost cost = bench.prefill(prompt);
  CHECK(cost.evaluated == 1);
  CHECK(cost.restored == 6 * kPageTokens - 1);
}

TEST_CASE(
    "KV-7: a keystroke loads only what is loaded faster than evaluated, and waits no longer") {
  FakeBackend backend({.page_count = 4});
  KvPool pool(4, {});
  FakeStore store;
  StoreTier tier(pool, backend, &store);
  const std::vector<TokenId> page = tokens(kPageTokens);
  const Digest identity = pool.identities(page).front();
  store.pages[identity] = {identity, std::nullopt, {kA}, std::vector<std::byte>(1024)};
  const auto load = [&](Wanted wanted) {
    return tier.load({identity, std::nullopt, page, 3}, wanted, {});
  };

  tier.measured(kPageTokens, 2ms);
  store.time_of_load = 3ms;
  CHECK_FALSE(tier.loadable(identity));
  CHECK_FALSE(load(Wanted::kNow));
  CHECK(store.loads == 0);
  store.time_of_load = 1ms;
  CHECK(tier.loadable(identity));
  store.answers_left = 0;
  CHECK_FALSE(load(Wanted::kNow));
  CHECK(store.last_patience == 3 * 2ms);
  store.answers_left = 2;
  CHECK(load(Wanted::kNow));
  CHECK(pool.check() == "");
  tier.measured(1, 1s);  // a step of one token says nothing of a page
  CHECK(tier.loadable(identity));
}

TEST_CASE("a page of another size than the device's is not used") {
  const auto store = std::make_shared<FakeStore>();
  const std::vector<TokenId> prompt = tokens(2 * kPageTokens);
  {
    Bench bench(store);
    bench.prefill(prompt);
    bench.write_all();
  }
  for (auto& [identity, page] : store->pages) page.bytes.resize(100);
  Bench bench(store);
  CHECK(bench.prefill(prompt).evaluated == 2 * kPageTokens);
}

TEST_CASE("what is forgotten is gone from the device, with all that is behind it") {
  const auto store = std::make_shared<FakeStore>();
  Bench bench(store);
  const std::vector<TokenId> shared = tokens(2 * kPageTokens);
  std::vector<TokenId> longer = shared;
  longer.resize(4 * kPageTokens, 3);
  bench.prefill(shared, kA);
  bench.prefill(longer, kB);
  bench.prefill(tokens(2 * kPageTokens, 30), kB);
  bench.engine->forget(kA);
  CHECK(bench.engine->pool().check() == "");
  CHECK(bench.engine->pool().resident(longer) == 0);
  CHECK(bench.engine->pool().resident(tokens(2 * kPageTokens, 30)) == 2 * kPageTokens);
}

TEST_CASE("a store without room is offered the same pages later") {
  const auto store = std::make_shared<FakeStore>();
  Bench bench(store);
  store->room = 1;
  bench.prefill(tokens(3 * kPageTokens));
  bench.write_all();
  CHECK(store->pages.size() == 1);
  store->room = 5;
  bench.write_all();
  CHECK(store->pages.size() == 3);
}
