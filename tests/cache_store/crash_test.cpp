// kill -9 while pages are written.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "cache_store/store.h"
#include "tests/cache_store/store_fixture.h"
#include "tests/support/count.h"

using namespace efimd;
using namespace efimd::test;

namespace {

constexpr int kPages = 60;

/// Writes, gives up, purges, without an end; a budget of half the pages keeps slots changing hands. A byte goes to `told` for
/// each batch that was kept.
[[noreturn]] void write_forever(const std::filesystem::path& folder, unsigned seed, int told) {
  const std::size_t budget = store::Store::kMetadataBytes + (kPages / 2) * 3 * 4096;
  const OpenStore store = open_store(folder, budget);
  if (!store) ::_exit(1);
  std::mt19937 random(seed);
  for (;;) {
    const auto arena = store->use_arena(test_arena());
    if (!arena) ::_exit(2);
    const std::string uri = "file:///" + std::to_string(random() % 4);
    std::vector<TestPage> pages;
    std::vector<store::NewPage> fresh;
    for (int i = 0; i < 5; ++i) pages.push_back(test_page(static_cast<int>(random() % kPages)));
    for (const TestPage& page : pages) fresh.push_back(page.of(uri));
    static_cast<void>(store->keep(*arena, fresh));
    if (::write(told, "k", 1) != 1) ::_exit(3);
    static_cast<void>(store->use(uri));
    if (random() % 16 == 0) static_cast<void>(store->purge(uri));
  }
}

}  // namespace

TEST_CASE("daemons killed while writing leave a store without a wrong page", "[one-thread]") {
  const int kills = times("EFIMD_KILLS", 200);
  const ScratchFolder scratch;
  std::mt19937 random(5);
  std::size_t pages = 0;
  for (int round = 0; round < kills; ++round) {
    std::array<int, 2> told{};
    REQUIRE(::pipe(told.data()) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) write_forever(scratch.store(), static_cast<unsigned>(round), told[1]);
    REQUIRE(::close(told[1]) == 0);
    // Any moment will do: opening, writing, giving up, purging; in every second round not before something was written, which
    // on a busy machine comes late.
    if (char byte = 0; round % 2 == 1) REQUIRE(::read(told[0], &byte, 1) == 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(::close(told[0]) == 0);
    INFO("round " << round << ", status " << status);
    REQUIRE(WIFSIGNALED(status));

    const OpenStore store = open_store(scratch.store());
    REQUIRE(store);
    for (int number = 0; number < kPages; ++number)
      REQUIRE(look_up(*store.store, number) != Found::kWrong);
    const auto verified = store->verify();
    REQUIRE(verified);
    pages += verified->pages - verified->dropped;
  }
  CHECK(pages > static_cast<std::size_t>(kills));  // kills did not only come before the first page
}
