#include "cache_store/store_service.h"

#include <catch2/catch.hpp>
#include <future>
#include <mutex>
#include <new>

#include "cache_store/loader.h"
#include "tests/cache_store/store_fixture.h"

using namespace efimd;
using namespace efimd::test;
using namespace std::chrono_literals;

namespace {

using store::StoreService;

constexpr auto kPatience = 180s;
constexpr auto kLate = 20s;  // what a busy machine may add to a wait

struct Fixture {
  ScratchFolder scratch;
  std::mutex mutex;
  std::vector<std::string> told;
  StoreService::Settings settings;

  Fixture() {
    settings.store.folder = scratch.store();
    settings.store.budget_bytes = std::size_t{1} << 30;
    settings.store.tell = [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      told.push_back(text);
    };
  }
  std::unique_ptr<StoreService> open() {
    auto service = std::make_unique<StoreService>(settings);
    REQUIRE(service->wait_opened(kPatience));
    service->set_arena(test_arena());
    return service;
  }
  std::size_t told_count() {
    const std::lock_guard lock(mutex);
    return told.size();
  }
};

bool write(StoreService& service, int number) {
  TestPage page = test_page(number);
  return service.write({page.digest, page.parent, {kA}, std::move(page.bytes)});
}

bool loads(StoreService& service, int number) {
  const auto bytes = service.load(test_page(number).digest, kPatience, {});
  return bytes && *bytes == test_page(number).bytes;
}

}  // namespace

TEST_CASE("pages that were written are loaded, also by the next service") {
  Fixture fixture;
  {
    const auto service = fixture.open();
    for (int number = 0; number < 20; ++number) REQUIRE(write(*service, number));
    REQUIRE(service->drain(kPatience));
    CHECK(service->holds(test_page(19).digest));
    CHECK(service->status().written_pages == 20);
  }
  const auto service = fixture.open();
  std::vector<Digest> chain;
  for (int number = 0; number < 20; ++number) chain.push_back(test_page(number).digest);
  service->want(chain);
  for (int number = 0; number < 20; ++number) CHECK(loads(*service, number));
  CHECK_FALSE(service->load(test_page(99).digest, kPatience, {}));
  CHECK(service->status().loaded_pages == 20);
  CHECK(service->status().load_bytes_per_s > 0);
  CHECK(fixture.told_count() == 0);
}

TEST_CASE("what waits when the service ends is written") {
  Fixture fixture;
  {
    const auto service = fixture.open();
    for (int number = 0; number < 20; ++number) REQUIRE(write(*service, number));
  }
  const auto service = fixture.open();
  CHECK(loads(*service, 19));
}

TEST_CASE("a queue that would take long to write does not hold up the end") {
  Fixture fixture;
  fixture.settings.write_bytes_per_s_max = 1;  // the first batch uses up hours of it
  auto service = fixture.open();
  std::promise<void> release;
  service->post([until = release.get_future().share()](store::Store&) { until.wait(); });
  for (int number = 0; number < 1500; ++number) REQUIRE(write(*service, number));
  const auto begin = std::chrono::steady_clock::now();
  release.set_value();
  service.reset();
  CHECK(std::chrono::steady_clock::now() - begin < store::StoreService::kCloseMax + kLate);
}

TEST_CASE("a thread that the file system holds does not hold up the end") {
  Fixture fixture;
  auto service = fixture.open();
  std::promise<void> entered, release;
  service->post([&entered, until = release.get_future().share()](store::Store&) {
    entered.set_value();
    until.wait();
  });
  entered.get_future().wait();
  const auto begin = std::chrono::steady_clock::now();
  service.reset();
  CHECK(std::chrono::steady_clock::now() - begin < store::StoreService::kCloseMax + kLate);
  release.set_value();
}

TEST_CASE("more pages than the queue holds are refused") {
  Fixture fixture;
  fixture.settings.write_queue_bytes_max = 4 * kPageBytes;
  const auto service = fixture.open();
  std::promise<void> release;
  service->post([until = release.get_future().share()](store::Store&) { until.wait(); });
  for (int number = 0; number < 4; ++number) CHECK(write(*service, number));
  CHECK_FALSE(write(*service, 4));
  release.set_value();
  REQUIRE(service->drain(kPatience));
  CHECK(write(*service, 4));
}

TEST_CASE("a command finds a place where too many tasks wait, and hears when there is none") {
  Fixture fixture;
  const auto service = fixture.open();
  REQUIRE(service->wait_opened(kPatience));
  std::promise<void> entered, release;
  service->post([&entered, until = release.get_future().share()](store::Store&) {
    entered.set_value();
    until.wait();
  });
  entered.get_future().wait();
  const auto nothing = [](store::Store&) {};
  for (std::size_t i = 0; i < store::StoreService::kTasksMax; ++i) REQUIRE(service->post(nothing));
  CHECK_FALSE(service->post(nothing));
  int served = 0;
  for (std::size_t i = 0; i < store::StoreService::kCommandsMax; ++i)
    REQUIRE(service->post_command([&served](store::Store&) { ++served; }));
  CHECK_FALSE(service->post_command(nothing));
  release.set_value();
  REQUIRE(service->drain(kPatience));
  CHECK(served == static_cast<int>(store::StoreService::kCommandsMax));
}

TEST_CASE("a day's writing is bounded, also over restarts") {
  Fixture fixture;
  fixture.settings.write_bytes_per_day_max = 10 * kPageBytes;
  for (int round = 0; round < 3; ++round) {
    const auto service = fixture.open();
    for (int number = 0; number < 10; ++number) {
      write(*service, 100 * round + number);
      REQUIRE(service->drain(kPatience));
    }
    CHECK(service->status().use.pages == 10);
  }
  CHECK(fixture.told_count() == 2);
}

TEST_CASE("a clock that was far ahead for a while does not end writing") {
  Fixture fixture;
  fixture.settings.write_bytes_per_day_max = 10 * kPageBytes;
  const auto service = fixture.open();
  for (const std::int64_t day : {std::int64_t{1} << 40, std::int64_t{0}, std::int64_t{-5}}) {
    REQUIRE(service->run(
        [day](store::Store& store) {
          REQUIRE(store.set_counter("write_day", day));
          REQUIRE(store.set_counter("write_day_bytes", std::int64_t{1} << 40));
        },
        kPatience));
    const int number = static_cast<int>(day % 100) + 50;
    REQUIRE(write(*service, number));
    REQUIRE(service->drain(kPatience));
    CHECK(loads(*service, number));
  }
  CHECK(fixture.told_count() == 0);
}

TEST_CASE("a folder that is removed under the service is made anew, and that is said once") {
  Fixture fixture;
  const auto service = fixture.open();
  for (int number = 0; number < 3; ++number) REQUIRE(write(*service, number));
  REQUIRE(service->drain(kPatience));
  std::filesystem::remove_all(fixture.scratch.store());
  for (int number = 10; number < 13; ++number) REQUIRE(write(*service, number));
  REQUIRE(service->drain(kPatience));
  CHECK(fixture.told_count() == 1);
  CHECK(std::filesystem::exists(fixture.scratch.store() / "store.db"));
  CHECK_FALSE(service->holds(test_page(0).digest));
  // Only lists and checks are asked for, and the arena alone is gone.
  std::filesystem::remove(fixture.scratch.store() / "1.kv");
  REQUIRE(service->run([](store::Store& store) { CHECK(store.usage().pages == 0); }, kPatience));
  REQUIRE(write(*service, 20));
  REQUIRE(service->drain(kPatience));
  CHECK(loads(*service, 20));
}

TEST_CASE("a folder that is moved away and back is found again with its pages") {
  Fixture fixture;
  const auto service = fixture.open();
  REQUIRE(write(*service, 1));
  REQUIRE(service->drain(kPatience));
  const auto away = fixture.scratch.path() / "away";
  std::filesystem::rename(fixture.scratch.store(), away);
  REQUIRE(write(*service, 2));
  REQUIRE(service->drain(kPatience));
  CHECK_FALSE(loads(*service, 1));
  std::filesystem::remove_all(fixture.scratch.store());
  std::filesystem::rename(away, fixture.scratch.store());
  REQUIRE(write(*service, 3));
  REQUIRE(service->drain(kPatience));
  CHECK(loads(*service, 1));
  CHECK(loads(*service, 3));
}

TEST_CASE("a folder that cannot be had any more costs the cache until it can, and is said once") {
  Fixture fixture;
  fixture.settings.retry_after = 1ms;
  const auto service = fixture.open();
  REQUIRE(write(*service, 0));
  REQUIRE(service->drain(kPatience));
  std::filesystem::remove_all(fixture.scratch.store());
  write_file(fixture.scratch.store(), {});  // nobody can make a folder there
  for (int number = 1; number < 6; ++number) {
    write(*service, number);
    REQUIRE(service->drain(kPatience));
    CHECK_FALSE(loads(*service, number));
  }
  REQUIRE(service->run(
      [](store::Store& store) {
        CHECK_FALSE(store.is_in_place());
        CHECK_FALSE(store.pin(kA, true));
        CHECK_FALSE(store.set_note(kA, Digest{1, 1}, "note"));
        CHECK(store.verify().value().pages == 0);
        CHECK(store.purge(kA).value().pages == 0);
        CHECK(store.documents().empty());
      },
      kPatience));
  CHECK(fixture.told_count() == 2);  // that it is gone, and that there is no other
  CHECK_FALSE(service->status().trouble.empty());
  std::filesystem::remove(fixture.scratch.store());
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!loads(*service, 7) && std::chrono::steady_clock::now() < deadline) {
    write(*service, 7);
    REQUIRE(service->drain(kPatience));
  }
  CHECK(loads(*service, 7));
  CHECK(fixture.told_count() == 2);
  CHECK(service->status().trouble.empty());
}

TEST_CASE("without a usable folder nothing is kept, and that is said once") {
  Fixture fixture;
  write_file(fixture.scratch.store(), {});
  const auto service = std::make_unique<StoreService>(fixture.settings);
  REQUIRE(service->wait_opened(kPatience));
  service->set_arena(test_arena());
  CHECK_FALSE(write(*service, 0));
  CHECK_FALSE(service->holds(test_page(0).digest));
  CHECK_FALSE(service->load(test_page(0).digest, kPatience, {}));
  CHECK_FALSE(service->run([](store::Store&) {}, kPatience));
  CHECK_FALSE(service->status().usable);
  CHECK(fixture.told_count() == 1);
}

TEST_CASE("a second daemon works without the store that the first one has") {
  Fixture fixture;
  const auto first = fixture.open();
  fixture.settings.locked_max = {};
  const auto second = fixture.open();
  CHECK(write(*first, 1));
  CHECK_FALSE(write(*second, 1));
  CHECK(fixture.told_count() == 1);
}

TEST_CASE("a daemon that starts while another ends waits for its store") {
  Fixture fixture;
  auto first = fixture.open();
  REQUIRE(write(*first, 1));
  fixture.settings.locked_max = kPatience;
  StoreService second(fixture.settings);
  second.set_arena(test_arena());
  // One that gave up at once would have done so by then; one that waits cannot be through.
  CHECK_FALSE(second.wait_opened(std::chrono::milliseconds(200)));
  first.reset();
  REQUIRE(second.wait_opened(kPatience));
  CHECK(loads(second, 1));
  CHECK(fixture.told_count() == 0);
}

TEST_CASE("a damaged page is a miss, is dropped, and is said once") {
  Fixture fixture;
  {
    const auto service = fixture.open();
    for (int number = 0; number < 3; ++number) REQUIRE(write(*service, number));
  }
  std::vector<std::byte> bytes = file_bytes(fixture.scratch.store() / "1.kv");
  for (std::size_t slot = 0; slot < 3; ++slot) bytes[4096 + slot * 3 * 4096 + 77] ^= std::byte{4};
  write_file(fixture.scratch.store() / "1.kv", bytes);
  const auto service = fixture.open();
  for (int number = 0; number < 3; ++number) CHECK_FALSE(loads(*service, number));
  REQUIRE(service->drain(kPatience));
  for (int number = 0; number < 3; ++number) CHECK_FALSE(service->holds(test_page(number).digest));
  CHECK(service->status().damaged_pages == 3);
  CHECK(fixture.told_count() == 1);
}

TEST_CASE("who waits for a page waits no longer than its patience, or its stop") {
  Fixture fixture;
  const auto service = fixture.open();
  REQUIRE(write(*service, 0));
  REQUIRE(service->drain(kPatience));
  std::stop_source stop;
  stop.request_stop();
  CHECK_FALSE(service->load(test_page(0).digest, kPatience, stop.get_token()));
  CHECK(loads(*service, 0));
}

TEST_CASE("pages of a document that is purged do not come back from the queue") {
  Fixture fixture;
  const auto service = fixture.open();
  std::promise<void> release;
  service->post([until = release.get_future().share()](store::Store&) { until.wait(); });
  REQUIRE(write(*service, 0));
  service->forget_queued(kA);
  release.set_value();
  REQUIRE(service->drain(kPatience));
  CHECK_FALSE(service->holds(test_page(0).digest));
}

TEST_CASE("without memory for a task or a page, the threads of the store go on") {
  Fixture fixture;
  const auto service = fixture.open();
  CHECK_FALSE(service->run([](store::Store&) { throw std::bad_alloc(); }, kPatience));
  REQUIRE(write(*service, 0));
  REQUIRE(service->drain(kPatience));
  CHECK(loads(*service, 0));

  int reads = 0;
  store::Loader loader(
      [&](const Digest&) -> std::optional<store::Loader::Bytes> {
        if (reads++ == 0) throw std::bad_alloc();
        return store::Loader::Bytes(1);
      },
      [](const Digest&) {}, 1);
  const auto ended = std::async(std::launch::async, [&] { loader.run(); });
  CHECK_FALSE(loader.load(Digest{1, 0}, kPatience, {}));
  CHECK(loader.load(Digest{1, 0}, kLate, {}));
  loader.close();
}
