// Budgets, a full disk, folders that cannot be used, file systems without locks.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>

#include "cache_store/store.h"
#include "tests/cache_store/store_fixture.h"

using namespace efimd;
using namespace efimd::test;

namespace {

/// Keeps 50 pages where there is room for fewer; 0 when the store and its early pages survive that.
int keep_on_full_disk(const std::filesystem::path& folder) {
  const OpenStore store = open_store(folder);
  if (!store) return 10;
  const std::size_t kept = keep_chain(*store.store, kA, 0, 50);
  if (kept == 0 || kept == 50) return 11;
  for (int number = 0; number < 50; ++number)
    if (const Found found = look_up(*store.store, number);
        found == Found::kWrong || found == Found::kDamaged)
      return 12;
  if (look_up(*store.store, 0) != Found::kRight) return 13;
  return 0;
}

}  // namespace

TEST_CASE("the files never exceed the budget, and the youngest pages stay") {
  const ScratchFolder scratch;
  const std::size_t budget = budget_for(20);
  const OpenStore store = open_store(scratch.store(), budget);
  REQUIRE(store);
  const int arena = store->use_arena(test_arena()).value();
  for (int number = 0; number < 100; ++number) {
    const TestPage page = test_page(number);
    const store::NewPage fresh = page.of(kA);
    REQUIRE(store->keep(arena, {&fresh, 1}).value() == 1);
    REQUIRE(store->usage().disk_bytes <= budget);
  }
  CHECK(look_up(*store.store, 99) == Found::kRight);
  CHECK(look_up(*store.store, 85) == Found::kRight);
  CHECK(look_up(*store.store, 5) == Found::kMissing);
  CHECK(store->usage().pages >= 18);
}

TEST_CASE("one model's old pages make room for another's new ones") {
  const ScratchFolder scratch;
  const std::size_t budget = budget_for(20);
  const OpenStore store = open_store(scratch.store(), budget);
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 18);
  const int other = store->use_arena(test_arena(8)).value();
  for (int number = 100; number < 115; ++number) {
    const TestPage page = test_page(number);
    const store::NewPage fresh = page.of(kB);
    REQUIRE(store->keep(other, {&fresh, 1}).value() == 1);
    REQUIRE(store->usage().disk_bytes <= budget);
  }
  for (int number = 100; number < 115; ++number)
    CHECK(look_up(*store.store, number) == Found::kRight);
}

TEST_CASE("a smaller budget is kept from the next start on") {
  const ScratchFolder scratch;
  {
    const OpenStore store = open_store(scratch.store());
    REQUIRE(store);
    keep_chain(*store.store, kA, 0, 40);
  }
  const OpenStore store = open_store(scratch.store(), budget_for(10));
  REQUIRE(store);
  CHECK(store->usage().disk_bytes <= budget_for(10));
  CHECK(look_up(*store.store, 0) == Found::kRight);  // leaves went first
  CHECK(look_up(*store.store, 39) == Found::kMissing);
}

TEST_CASE("budgets of zero and below a page keep nothing, and say so once") {
  for (const std::size_t budget : {std::size_t{0}, std::size_t{1}, store::Store::kMetadataBytes,
                                   store::Store::kMetadataBytes + kSlotBytes - 1}) {
    const ScratchFolder scratch;
    const OpenStore store = open_store(scratch.store(), budget);
    REQUIRE(store);
    CHECK(keep_chain(*store.store, kA, 0, 5) == 0);
    CHECK(store->usage().pages == 0);
    CHECK(store.told->size() == 1);
  }
}

TEST_CASE("pinned pages are never given up") {
  const ScratchFolder scratch;
  const OpenStore store = open_store(scratch.store(), budget_for(10));
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 9);
  REQUIRE(store->pin(kA, true));
  keep_chain(*store.store, kB, 100, 120);
  CHECK(store->usage().disk_bytes <= budget_for(10));
  for (int number = 0; number < 9; ++number) CHECK(look_up(*store.store, number) == Found::kRight);
}

TEST_CASE("a disk that is full costs pages, not the daemon") {
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{20 * kSlotBytes, 20 * kSlotBytes};
          ::setrlimit(RLIMIT_FSIZE, &limit);
          return keep_on_full_disk(scratch.store());
        }) == 0);
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  CHECK(store->verify().value().dropped == 0);
  CHECK(keep_chain(*store.store, kB, 100, 150) == 50);
}

TEST_CASE("an arena whose file cannot be made at first costs no other's pages") {
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          const OpenStore store = open_store(scratch.store());
          keep_chain(*store.store, kA, 0, 20);
          const rlimit none{0, 100};
          ::setrlimit(RLIMIT_NOFILE, &none);
          if (store->use_arena(test_arena(8))) return 1;
          const rlimit some{100, 100};
          ::setrlimit(RLIMIT_NOFILE, &some);
          if (!store->use_arena(test_arena(8))) return 2;
          return store->usage().pages == 20 && store.told->empty() ? 0 : 3;
        }) == 0);
}

TEST_CASE("a purge that failed is done by the next one, in every arena") {
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const OpenStore store = open_store(scratch.store());
          std::vector<int> arenas;
          for (const std::uint64_t model : {7U, 8U}) {
            arenas.push_back(store->use_arena(test_arena(model)).value());
            const TestPage page = test_page(static_cast<int>(model));
            const store::NewPage fresh = page.of(kA);
            static_cast<void>(store->keep(arenas.back(), {&fresh, 1}));
          }
          const rlimit none{100, RLIM_INFINITY}, any{RLIM_INFINITY, RLIM_INFINITY};
          ::setrlimit(RLIMIT_FSIZE, &none);
          if (store->purge(kA)) return 1;
          ::setrlimit(RLIMIT_FSIZE, &any);
          if (!store->purge(kA)) return 2;
          for (std::size_t i = 0; i < arenas.size(); ++i) {
            const std::vector<std::byte> file =
                file_bytes(scratch.store() / (std::to_string(arenas[i]) + ".kv"));
            const std::vector<std::byte> page = test_page(i == 0 ? 7 : 8).bytes;
            if (std::search(file.begin(), file.end(), page.begin(), page.end()) != file.end())
              return 3;
          }
          return store->verify().value().pages == 0 ? 0 : 4;
        }) == 0);
}

TEST_CASE("the note of a document that shared pages goes also if their purge failed at first") {
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const OpenStore store = open_store(scratch.store());
          const Digest model = test_arena(7).model;
          if (keep_chain(*store.store, kA, 0, 20) != 20) return 1;
          if (!store->set_note(kB, model, "tokens of A")) return 2;
          if (!store->add_source(test_page(19).digest, kB)) return 3;
          const rlimit some{4096 + 15 * kSlotBytes, RLIM_INFINITY};
          const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
          ::setrlimit(RLIMIT_FSIZE, &some);
          if (store->purge(kA)) return 4;
          ::setrlimit(RLIMIT_FSIZE, &any);
          if (!store->purge(kA)) return 5;
          return store->notes(model).value().empty() ? 0 : 6;
        }) == 0);
}

TEST_CASE("a purge of everything that failed leaves no page that seems damaged") {
  const ScratchFolder scratch;
  CHECK(in_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const OpenStore store = open_store(scratch.store());
          if (keep_chain(*store.store, kA, 0, 10) != 10) return 1;
          const rlimit five{4096 + 5 * kSlotBytes, RLIM_INFINITY};
          const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
          ::setrlimit(RLIMIT_FSIZE, &five);
          if (store->purge_all()) return 2;
          ::setrlimit(RLIMIT_FSIZE, &any);
          for (int number = 0; number < 10; ++number)
            if (look_up(*store.store, number) != Found::kMissing) return 3;
          if (!store->purge_all()) return 4;
          if (std::filesystem::exists(scratch.store() / "1.kv")) return 5;
          if (keep_chain(*store.store, kA, 0, 10) != 10) return 6;
          return look_up(*store.store, 9) == Found::kRight ? 0 : 7;
        }) == 0);
}

TEST_CASE("a file system with a few megabytes is not filled to the brim") {
  const ScratchFolder scratch;
  if (::mount("none", scratch.path().c_str(), "tmpfs", 0, "size=6m") != 0) {
    WARN("skipped: mounting a small file system needs privileges");
    return;
  }
  {
    const OpenStore store = open_store(scratch.store());
    REQUIRE(store);
    const int arena = store->use_arena(test_arena()).value();
    for (int number = 0; number < 1000; ++number) {
      const TestPage page = test_page(number);
      const store::NewPage fresh = page.of(kA);
      REQUIRE(store->keep(arena, {&fresh, 1}).value() == 1);
    }
    CHECK(look_up(*store.store, 999) == Found::kRight);
    CHECK(std::filesystem::space(scratch.path()).available > 0);
    // Others fill the disk: then nothing is kept, and nothing breaks.
    const int fill = ::open((scratch.path() / "fill").c_str(), O_CREAT | O_WRONLY, 0600);
    const std::vector<std::byte> zeros(1U << 16U);
    while (::write(fill, zeros.data(), zeros.size()) > 0) {
    }
    ::close(fill);
    keep_chain(*store.store, kB, 2000, 2005);
    for (int number = 2000; number < 2005; ++number)
      CHECK(look_up(*store.store, number) != Found::kWrong);
  }
  CHECK(::umount(scratch.path().c_str()) == 0);
}

TEST_CASE("a folder that cannot be written is refused with its reason") {
  const ScratchFolder scratch;
  // Root may write anywhere, so the test is done as somebody else.
  CHECK(in_child([&] {
          if (::chmod(scratch.path().c_str(), 0755) != 0) return 1;
          if (::geteuid() == 0 && ::seteuid(65534) != 0) return 2;
          if (::geteuid() != 65534 && ::chmod(scratch.path().c_str(), 0500) != 0) return 3;
          const OpenStore store = open_store(scratch.store());
          if (store) return 4;
          return store.error.fault == Fault::kIo && !store.error.remedy.empty() ? 0 : 5;
        }) == 0);
  std::filesystem::permissions(scratch.path(), std::filesystem::perms::owner_all);
}

TEST_CASE("a file in the folder's place, and a folder of someone else's making, are refused") {
  const ScratchFolder scratch;
  write_file(scratch.store(), {});
  CHECK_FALSE(open_store(scratch.store()));
  std::filesystem::remove(scratch.store());
  std::filesystem::create_directory(scratch.path() / "elsewhere");
  std::filesystem::create_symlink(scratch.path() / "elsewhere", scratch.store());
  CHECK_FALSE(open_store(scratch.store()));
}

TEST_CASE(
    "uses and times that no clock could have written neither lose pages nor upset their order") {
  for (const char* number : {"-1", "9223372036854775807", "-9223372036854775808", "0"}) {
    const ScratchFolder scratch;
    {
      const OpenStore store = open_store(scratch.store());
      REQUIRE(store);
      REQUIRE(keep_chain(*store.store, kA, 0, 5) == 5);
      REQUIRE(store->pin(kA, true));
      REQUIRE(store->use(kA));
    }
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open((scratch.store() / "store.db").c_str(), &database) == SQLITE_OK);
    const std::string times = std::string("UPDATE sources SET last_use = ") + number +
                              ", used_at_s = " + number + "; UPDATE pages SET last_use = " + number;
    REQUIRE(sqlite3_exec(database, times.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(database);
    INFO(number);
    const OpenStore store = open_store(scratch.store(), budget_for(20));
    REQUIRE(store);
    CHECK(store.told->empty());
    REQUIRE(store->pin(kA, false));
    // More than there is room for: those of long ago go first, the latest stay.
    const int arena = store->use_arena(test_arena()).value();
    for (int page = 100; page < 120; ++page) {
      const TestPage made = test_page(page);
      const store::NewPage fresh = made.of(kB);
      REQUIRE(store->keep(arena, {&fresh, 1}).value() == 1);
    }
    CHECK(look_up(*store.store, 4) == Found::kMissing);
    CHECK(look_up(*store.store, 119) == Found::kRight);
    CHECK(look_up(*store.store, 105) == Found::kRight);
  }
}

namespace {

// A file system whose locks fail, as some network file systems' do: SQLite's own, with another lock.
sqlite3_io_methods lockless_methods;
int (*open_below)(sqlite3_vfs*, sqlite3_filename, sqlite3_file*, int, int*);

int no_lock(sqlite3_file*, int) { return SQLITE_IOERR_LOCK; }

int open_lockless(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
                  int* out_flags) {
  const int code = open_below(vfs, name, file, flags, out_flags);
  if (code == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) != 0) {
    lockless_methods = *file->pMethods;
    lockless_methods.xLock = no_lock;
    file->pMethods = &lockless_methods;
  }
  return code;
}

}  // namespace

TEST_CASE("on a file system without locks SQLite goes without, and the user is told") {
  const ScratchFolder scratch;
  sqlite3_initialize();
  sqlite3_vfs* const usual = sqlite3_vfs_find(nullptr);
  sqlite3_vfs lockless = *usual;
  lockless.zName = "lockless";
  lockless.pNext = nullptr;
  open_below = usual->xOpen;
  lockless.xOpen = open_lockless;
  sqlite3_vfs_register(&lockless, 1);
  {
    const OpenStore store = open_store(scratch.store());
    REQUIRE(store);
    REQUIRE(store.told->size() == 1);
    CHECK_THAT(store.told->front(), Catch::Contains("no locks"));
    CHECK(keep_chain(*store.store, kA, 0, 5) == 5);
    CHECK(look_up(*store.store, 4) == Found::kRight);
  }
  sqlite3_vfs_unregister(&lockless);
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  CHECK(look_up(*store.store, 4) == Found::kRight);
}
