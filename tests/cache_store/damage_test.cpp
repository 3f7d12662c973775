// ST-1 and ST-3: whatever happens to the files, a page that is read is the page that was kept.
#include <catch2/catch.hpp>
#include <random>

#include "cache_store/store.h"
#include "tests/cache_store/store_fixture.h"

using namespace efimd;
using namespace efimd::test;

namespace {

namespace fs = std::filesystem;

constexpr int kPagesKept = 12;

void make_store(const fs::path& folder) {
  const OpenStore store = open_store(folder);
  REQUIRE(store);
  REQUIRE(keep_chain(*store.store, kA, 0, kPagesKept) == kPagesKept);
}

/// No page is wrong, the store works on, and after verify() every page is right or gone.
void check_sound(const OpenStore& store) {
  REQUIRE(store);
  for (int number = 0; number < kPagesKept; ++number)
    REQUIRE(look_up(*store.store, number) != Found::kWrong);
  REQUIRE(store->verify());
  for (int number = 0; number < kPagesKept; ++number) {
    const Found found = look_up(*store.store, number);
    REQUIRE((found == Found::kRight || found == Found::kMissing));
  }
  // Damage that only writing comes across starts the store over: then the second try counts.
  keep_chain(*store.store, kA, 500, 503);
  keep_chain(*store.store, kA, 500, 503);
  REQUIRE(look_up(*store.store, 502) == Found::kRight);
  REQUIRE(store->purge(kA));
}

}  // namespace

TEST_CASE("bits that flip anywhere in the arena or the database never make a wrong page",
          "[one-thread]") {
  const ScratchFolder whole;
  make_store(whole.store());
  std::mt19937 random(20260101);
  for (const char* name : {"1.kv", "store.db"}) {
    const std::vector<std::byte> good = file_bytes(whole.store() / name);
    REQUIRE(good.size() > 4096);
    for (int round = 0; round < 40; ++round) {
      const ScratchFolder scratch;
      fs::copy(whole.store(), scratch.store(), fs::copy_options::recursive);
      std::vector<std::byte> bad = good;
      const int flips = 1 + round % 3;
      for (int flip = 0; flip < flips; ++flip)
        bad[random() % bad.size()] ^= std::byte{static_cast<unsigned char>(1U << (random() % 8))};
      write_file(scratch.store() / name, bad);
      INFO(name << ", round " << round);
      check_sound(open_store(scratch.store()));
    }
  }
}

TEST_CASE("a database whose head asks for a later SQLite to write it is started over",
          "[one-thread]") {
  constexpr std::size_t kWriteVersion = 18;  // by SQLite's description of its file format
  const ScratchFolder scratch;
  make_store(scratch.store());
  std::vector<std::byte> bytes = file_bytes(scratch.store() / "store.db");
  bytes.at(kWriteVersion) = std::byte{0xFF};
  write_file(scratch.store() / "store.db", bytes);
  check_sound(open_store(scratch.store()));
}

TEST_CASE("files that are cut off at any length never make a wrong page", "[one-thread]") {
  const ScratchFolder whole;
  make_store(whole.store());
  std::mt19937 random(7);
  for (const char* name : {"1.kv", "store.db"}) {
    const auto size = fs::file_size(whole.store() / name);
    for (int round = 0; round < 15; ++round) {
      const ScratchFolder scratch;
      fs::copy(whole.store(), scratch.store(), fs::copy_options::recursive);
      fs::resize_file(scratch.store() / name, random() % size);
      INFO(name << ", round " << round);
      check_sound(open_store(scratch.store()));
    }
  }
}

TEST_CASE("a damaged page is missed once and gone after it was dropped") {
  const ScratchFolder scratch;
  make_store(scratch.store());
  std::vector<std::byte> bytes = file_bytes(scratch.store() / "1.kv");
  bytes[store::Arena::kAlignment + 5000] ^= std::byte{1};
  write_file(scratch.store() / "1.kv", bytes);
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  int damaged = 0;
  for (int number = 0; number < kPagesKept; ++number)
    if (look_up(*store.store, number) == Found::kDamaged) {
      ++damaged;
      REQUIRE(store->drop(test_page(number).digest));
      CHECK(look_up(*store.store, number) == Found::kMissing);
    }
  CHECK(damaged == 1);
  CHECK(store->verify().value().pages == kPagesKept - 1);
}

TEST_CASE("a deleted arena is started over, and said once") {
  const ScratchFolder scratch;
  make_store(scratch.store());
  fs::remove(scratch.store() / "1.kv");
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  REQUIRE(store.told->size() == 1);
  CHECK_THAT(store.told->front(), Catch::Contains("12 pages are lost"));
  CHECK(store->usage().pages == 0);
  check_sound(store);
}

TEST_CASE("an arena of another generation is not believed") {
  const ScratchFolder scratch, other;
  make_store(scratch.store());
  make_store(other.store());
  fs::copy_file(other.store() / "1.kv", scratch.store() / "1.kv",
                fs::copy_options::overwrite_existing);
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  CHECK(store->usage().pages == 0);
  CHECK(store.told->size() == 1);
}

TEST_CASE("a deleted arena does not disturb a store that has it open") {
  const ScratchFolder scratch;
  make_store(scratch.store());
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  fs::remove_all(scratch.store());
  for (int number = 0; number < kPagesKept; ++number)
    CHECK(look_up(*store.store, number) == Found::kRight);
  keep_chain(*store.store, kA, 200, 203);
  for (int number = 200; number < 203; ++number)
    CHECK(look_up(*store.store, number) != Found::kWrong);
}

TEST_CASE("a database of a future schema, and none at all, are started over, and said once") {
  const ScratchFolder scratch;
  make_store(scratch.store());
  std::vector<std::byte> database = file_bytes(scratch.store() / "store.db");
  database[63] = std::byte{99};  // PRAGMA user_version, big-endian at 60
  write_file(scratch.store() / "store.db", database);
  {
    const OpenStore store = open_store(scratch.store());
    REQUIRE(store);
    REQUIRE(store.told->size() == 1);
    CHECK_THAT(store.told->front(), Catch::Contains("schema 99"));
    CHECK(store->usage().pages == 0);
    check_sound(store);
  }
  write_file(scratch.store() / "store.db", std::vector<std::byte>(10000, std::byte{'x'}));
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  CHECK(store.told->size() == 1);
  check_sound(store);
}
