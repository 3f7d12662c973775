#include "engine/kv/host_store.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "engine/lasting_engine.h"
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
constexpr std::size_t kBytes = 100;

Digest digest(std::uint64_t number) { return {number, 0}; }

/// Page `number`, whose bytes are its number.
PageToStore page(std::uint64_t number, std::optional<std::uint64_t> parent = {},
                 std::vector<SourceId> sources = {kA}) {
  PageToStore made{digest(number), std::nullopt, std::move(sources),
                   std::vector<std::byte>(kBytes, static_cast<std::byte>(number))};
  if (parent) made.parent = digest(*parent);
  return made;
}

/// The pages 1 .. `count` that are held.
std::vector<std::uint64_t> held(const HostStore& store, std::uint64_t count) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 1; number <= count; ++number)
    if (store.holds(digest(number))) numbers.push_back(number);
  return numbers;
}

using Numbers = std::vector<std::uint64_t>;

std::vector<TokenId> tokens(int count) {
  std::vector<TokenId> list(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < list.size(); ++at) list[at] = static_cast<int>(at) % 61;
  return list;
}

Result<std::unique_ptr<Engine>> engine_with(std::shared_ptr<PageStore> store, int pages) {
  FakeBackend::Options options;
  options.page_count = pages;
  EngineOptions of_engine;
  of_engine.store = std::move(store);
  return LocalEngine::make(
             {.layers = options.layers, .vocabulary = options.vocabulary, .context_tokens = 4096},
             nullptr, std::make_unique<FakeBackend>(options), of_engine)
      .map([](std::unique_ptr<LocalEngine> made) -> std::unique_ptr<Engine> { return made; });
}

PromptCost hold_once(Engine& engine, const std::vector<TokenId>& prompt) {
  const SequenceId sequence = engine.open_sequence();
  engine.set_source(sequence, kA);
  const auto cost = engine.prefill(sequence, prompt, {});
  REQUIRE(cost);
  engine.close_sequence(sequence);
  return *cost;
}

}  // namespace

TEST_CASE("the host gives up leaves first, those unused for longest, and keeps its budget") {
  HostStore store(4 * kBytes, nullptr);
  store.write(page(1));
  store.write(page(2, 1));
  store.write(page(3, 2));
  store.write(page(4));
  CHECK(store.host_usage().used_bytes == 4 * kBytes);
  REQUIRE(store.load(digest(3), 0s, {}));  // 4 is the leaf unused for longest
  store.write(page(5));
  CHECK(held(store, 5) == Numbers{1, 2, 3, 5});
  REQUIRE(store.load(digest(5), 0s, {}));
  store.write(page(6, 5));
  CHECK(held(store, 6) == Numbers{1, 2, 5, 6});  // never a parent before its child
  CHECK(store.host_usage().used_bytes == 4 * kBytes);
  CHECK(store.load(digest(6), 0s, {}) == page(6).bytes);
  CHECK_FALSE(store.load(digest(3), 0s, {}));
}

TEST_CASE("the host keeps what is visited often longer, also what it has already") {
  HostStore store(2 * kBytes, nullptr);
  store.write(page(1, std::nullopt, {kA}));
  store.write(page(2, std::nullopt, {kB}));
  store.visited(kA, 3);
  store.visited(SourceId::kNone, 0);
  store.write(page(3, std::nullopt, {kB}));
  CHECK(held(store, 3) == Numbers{1, 3});
  store.visited(kB, 0);
  store.write(page(4, std::nullopt, {kB}));
  CHECK(held(store, 4) == Numbers{1, 4});
  store.visited(kA, 0);
  store.write(page(5, std::nullopt, {kB}));
  CHECK(held(store, 5) == Numbers{4, 5});
}

TEST_CASE("thousands of pages in any order stay within the host's budget") {
  std::mt19937 random(7);
  for (const std::size_t room : {0, 1, 3, 10}) {
    HostStore store(room * kBytes, nullptr);
    for (int i = 0; i < 5000; ++i) {
      const std::uint64_t number = 1 + random() % 40;
      const auto source = static_cast<SourceId>(1 + number % 3);
      switch (random() % 9) {
        case 0:
          store.forget(source);
          break;
        case 1:
          store.add_sources(digest(number), std::array{source});
          break;
        case 2:
          store.visited(source, static_cast<int>(random() % 50));
          break;
        case 3:
          static_cast<void>(store.load(digest(number), 0s, {}));
          break;
        default:  // a page's parent is another number than itself
          store.write(
              page(number, random() % 2 == 0 ? std::optional(number / 2) : std::nullopt, {source}));
      }
      const std::size_t count = held(store, 40).size();
      CHECK(store.host_usage().used_bytes == count * kBytes);
      REQUIRE(count <= room);
    }
    store.clear();
    CHECK(held(store, 40).empty());
  }
}

TEST_CASE("what is handed over goes to the disk as well, and is loaded from the host") {
  const auto disk = std::make_shared<FakeStore>();
  disk->time_of_load = 5ms;
  HostStore store(1 * kBytes, disk);
  CHECK(store.write(page(1)));
  CHECK(store.write(page(2, 1)));
  CHECK(disk->written == std::vector{digest(1), digest(2)});
  CHECK(held(store, 2) == Numbers{1, 2});
  CHECK(store.load_time(digest(2)) == 0ms);
  CHECK(store.load_time(digest(1)) == 5ms);
  CHECK(store.load(digest(2), 0s, {}) == page(2).bytes);
  CHECK(disk->loads == 0);
  CHECK(store.load(digest(1), 0s, {}) == page(1).bytes);
  CHECK(disk->loads == 1);
  store.want(std::array{digest(1), digest(2)});
  CHECK(disk->wanted == std::vector{digest(1)});
}

TEST_CASE("a page that leaves the device is taken though the disk is busy, and follows later") {
  const auto disk = std::make_shared<FakeStore>();
  disk->room = 0;
  HostStore store(4 * kBytes, disk);
  CHECK_FALSE(store.takes_page(Leaving::kNo));
  CHECK(store.takes_page(Leaving::kYes));
  CHECK(store.write(page(1)));
  disk->room = 1;
  store.add_sources(digest(1), std::array{kB});
  CHECK(disk->pages.at(digest(1)).sources == std::vector{kA, kB});
}

TEST_CASE("without room for a page the host's tier is the disk alone") {
  const auto disk = std::make_shared<FakeStore>();
  for (const std::size_t budget : {std::size_t{0}, kBytes - 1}) {
    HostStore store(budget, disk);
    store.write(page(1));
    CHECK(disk->pages.size() == 1);
    CHECK(store.host_usage().used_bytes == 0);
  }
  HostStore nowhere(0, nullptr);
  CHECK_FALSE(nowhere.is_usable());
  CHECK_FALSE(nowhere.takes_page(Leaving::kYes));
  CHECK_FALSE(nowhere.write(page(1)));
}

TEST_CASE("pages of a document that is purged leave the host") {
  HostStore store(9 * kBytes, nullptr);
  store.write(page(1, {}, {kA, kB}));
  store.write(page(2, 1, {kB}));
  store.write(page(3, {}, {kA}));
  store.forget(kB);
  CHECK(held(store, 3) == Numbers{3});
  CHECK_FALSE(store.overwrite_some());
}

TEST_CASE("what follows a purged page over any number of others leaves the host with it") {
  // In rounds over all pages, one for each generation, this would take longer than a test may.
  constexpr std::uint64_t kChain = 200000;
  HostStore store((kChain + 2) * kBytes, nullptr);
  for (std::uint64_t number = 1; number <= kChain; ++number)
    store.write(page(number, number - 1, {number == 1 ? kB : kA}));
  store.write(page(kChain + 1));
  store.forget(kB);
  CHECK(held(store, kChain + 1) == Numbers{kChain + 1});
}

TEST_CASE("a device that holds one file gets the other back from the host") {
  const auto host = std::make_shared<HostStore>(std::size_t{1} << 20, nullptr);
  const auto engine = engine_with(host, 8);
  REQUIRE(engine);
  const std::vector<TokenId> prompt = tokens(6 * kPageTokens + 5);
  const std::vector<TokenId> other(prompt.rbegin(), prompt.rend());
  CHECK(hold_once(**engine, prompt).reused == 0);
  CHECK(hold_once(**engine, other).reused == 0);
  for (const auto* again : {&prompt, &other, &prompt}) {
    const PromptCost cost = hold_once(**engine, *again);
    CHECK(cost.reused == 6 * kPageTokens);
    CHECK(cost.evaluated == 5);
  }
  CHECK((*engine)->kv_usage().host.used_bytes > 0);
}

TEST_CASE("what was on a device that was given back is loaded from the host") {
  const auto host = std::make_shared<HostStore>(std::size_t{1} << 20, nullptr);
  const auto engine = LastingEngine::make(
      nullptr, [&](const Error* /*lost*/) { return engine_with(host, 16); }, host);
  REQUIRE(engine);
  const std::vector<TokenId> prompt = tokens(6 * kPageTokens + 5);
  CHECK(hold_once(**engine, prompt).reused == 0);
  (*engine)->release_device();
  CHECK((*engine)->kv_usage().used_bytes == 0);
  CHECK((*engine)->kv_usage().host.used_bytes > 0);
  CHECK(hold_once(**engine, prompt).evaluated == 5);
  (*engine)->release_device();
  (*engine)->forget(kA);
  CHECK((*engine)->kv_usage().host.used_bytes == 0);
  CHECK(hold_once(**engine, prompt).reused == 0);
}
