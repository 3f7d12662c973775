// File systems that give no blocks back or hide a quota, and documents that are larger than their room.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <random>

#include "cache_store/store.h"
#include "tests/cache_store/store_fixture.h"

using namespace efimd;
using namespace efimd::test;

namespace {

/// From here on this process's calls of `number` fail with `error`, if their argument `argument` is at
/// least `least`.
bool refuse(int number, int error, unsigned argument, std::uint32_t least) {
  const auto jump = [](std::uint16_t code, std::uint32_t value, std::uint8_t past) {
    return sock_filter{static_cast<std::uint16_t>(BPF_JMP | BPF_K | code), 0, past, value};
  };
  const auto load = [](std::size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)};
  };
  const auto answer = [](std::uint32_t value) { return sock_filter{BPF_RET | BPF_K, 0, 0, value}; };
  std::array filter = {load(offsetof(seccomp_data, nr)),
                       jump(BPF_JEQ, static_cast<std::uint32_t>(number), 3),
                       load(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t)),
                       jump(BPF_JGE, least, 1),
                       answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
                       answer(SECCOMP_RET_ALLOW)};
  sock_fprog program{filter.size(), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool no_holes() { return refuse(SYS_fallocate, EOPNOTSUPP, 0, 0); }

/// Pages 100 to 119 of kB, and then 0 to 19 of kA.
bool keep_two_chains(const ScratchFolder& scratch) {
  const OpenStore store = open_store(scratch.store());
  return keep_chain(*store.store, kB, 100, 120) == 20 &&
         keep_chain(*store.store, kA, 0, 20) == 20 && store->use(kB) && store->use(kA);
}

/// How many of the pages [first, end) are right, counted up to the first that is not.
int usable(const store::Store& store, int first, int end) {
  int number = first;
  while (number < end && look_up(store, number) == Found::kRight) ++number;
  return number - first;
}

}  // namespace

TEST_CASE("a smaller budget costs no more pages on a file system that gives no blocks back") {
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          if (!no_holes()) return 1;
          if (!keep_two_chains(scratch)) return 2;
          const OpenStore store = open_store(scratch.store(), budget_for(30));
          if (store->usage().disk_bytes > budget_for(30)) return 5;
          if (usable(*store.store, 0, 20) != 20) return 6;
          if (usable(*store.store, 100, 120) < 8) return 7;
          const std::size_t before = store->usage().pages;
          if (keep_chain(*store.store, kB, 200, 202) != 2) return 8;
          if (store->usage().pages + 2 < before) return 9;
          return store->verify().value().dropped == 0 ? 0 : 10;
        }) == 0);
}

TEST_CASE(
    "a page that cannot be moved on a full file system is lost, and no other takes its place") {
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          if (!no_holes()) return 1;
          if (!keep_two_chains(scratch)) return 2;
          // As long as a page is: what SQLite writes is shorter.
          if (!refuse(SYS_pwrite64, ENOSPC, 2, kPageBytes)) return 5;
          const OpenStore store = open_store(scratch.store(), budget_for(30));
          if (store->usage().disk_bytes > budget_for(30)) return 6;
          return store->verify().value().dropped == 0 ? 0 : 7;
        }) == 0);
}

TEST_CASE("another model finds room on a file system that gives no blocks back") {
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          if (!no_holes()) return 1;
          const OpenStore store = open_store(scratch.store(), budget_for(20));
          if (keep_chain(*store.store, kB, 200, 209) != 9) return 2;
          if (keep_chain(*store.store, kA, 0, 9) != 9) return 2;
          const int other = store->use_arena(test_arena(8)).value();
          for (int number = 100; number < 104; ++number) {
            const TestPage page = test_page(number);
            const store::NewPage fresh = page.of(kB);
            if (store->keep(other, {&fresh, 1}).value_or(0) != 1) return 3;
          }
          if (store->usage().disk_bytes > budget_for(20)) return 4;
          if (usable(*store.store, 100, 104) != 4) return 5;
          return usable(*store.store, 0, 9) == 9 && usable(*store.store, 200, 209) >= 3 ? 0 : 6;
        }) == 0);
}

TEST_CASE("where a quota is used up, old pages make room for new ones") {
  constexpr int kRoom = 80;
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          const OpenStore store = open_store(scratch.store());
          if (!refuse(SYS_pwrite64, EDQUOT, 3, kRoom * kSlotBytes)) return 1;
          if (keep_chain(*store.store, kA, 0, kRoom - 2) != kRoom - 2) return 2;
          if (keep_chain(*store.store, kB, 100, 110) != 10) return 3;
          if (usable(*store.store, 100, 110) != 10) return 4;
          if (usable(*store.store, 0, kRoom) < kRoom - 15) return 5;
          return store->verify().value().dropped == 0 ? 0 : 6;
        }) == 0);
}

TEST_CASE("a text that has no room keeps its beginning, which alone is of use") {
  const ScratchFolder scratch;
  const OpenStore store = open_store(scratch.store(), budget_for(30));
  REQUIRE(store);
  REQUIRE(keep_chain(*store.store, kA, 0, 15) == 15);
  REQUIRE(store->pin(kA, true));
  const int arena = store->use_arena(test_arena()).value();
  constexpr int kBatch = 10;
  for (int first = 100; first < 160; first += kBatch) {
    std::vector<TestPage> pages;
    for (int number = first; number < first + kBatch; ++number)
      pages.push_back(test_page(number, number > 100 ? std::optional(number - 1) : std::nullopt));
    std::vector<store::NewPage> fresh;
    for (const TestPage& page : pages) fresh.push_back(page.of(kB));
    REQUIRE(store->keep(arena, fresh));
  }
  CHECK(store->usage().pages >= 28);
  CHECK(usable(*store.store, 100, 160) + 15 == static_cast<int>(store->usage().pages));
}

namespace {

/// Keeps, drops, purges and opens anew at random, under budgets that change; 0 if every page that was found
/// was right, and the budget held from each opening on.
int change_at_random(const std::filesystem::path& folder, unsigned seed) {
  std::mt19937 random(seed);
  std::size_t budget = budget_for(30);
  OpenStore store = open_store(folder, budget);
  if (!store) return 10;
  for (int round = 0; round < 120; ++round) {
    const int first = static_cast<int>(random() % 20) * 10;
    const std::string uri = "file:///" + std::to_string(first / 40);
    switch (random() % 8) {
      case 0:
        budget = budget_for(5 + random() % 40);
        store = {};
        store = open_store(folder, budget);
        if (!store) return 10;
        if (std::ranges::none_of(store->documents(), &store::DocumentUse::pinned) &&
            store->usage().disk_bytes > budget)
          return 11;
        break;
      case 1:
        if (!store->purge(uri)) return 12;
        break;
      case 2:
        if (!store->drop(test_page(first).digest)) return 13;
        break;
      case 3:
        if (!store->pin(uri, random() % 4 == 0)) return 14;
        store->visit(uri, static_cast<int>(random() % 9), 0);
        break;
      default: {
        const auto arena = store->use_arena(test_arena(7 + static_cast<unsigned>(first) / 10 % 2));
        std::vector<TestPage> pages;
        for (int number = first; number < first + 6; ++number)
          pages.push_back(
              test_page(number, number > first ? std::optional(number - 1) : std::nullopt));
        std::vector<store::NewPage> fresh;
        for (const TestPage& page : pages) fresh.push_back(page.of(uri));
        if (!arena || !store->keep(*arena, fresh)) return 15;
      }
    }
    for (int number = 0; number < 200; ++number)
      if (const Found found = look_up(*store.store, number);
          found != Found::kRight && found != Found::kMissing)
        return 16;
  }
  return store->verify().value().dropped == 0 ? 0 : 17;
}

}  // namespace

TEST_CASE("thousands of changes never give two pages one slot, whatever the file system can") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const ScratchFolder scratch;
    INFO("seed " << seed);
    CHECK(in_child([&] {
            if (seed % 2 == 1 && !no_holes()) return 1;
            return change_at_random(scratch.store(), seed);
          }) == 0);
  }
}
