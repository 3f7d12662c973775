// ST-1 after a loss of power: what was written since a file's last sync may be there, in part, in any order, or not.
//
// The calls that change files are this program's own, also for SQLite: they do their work and note it. A moment of the notes is
// chosen, and the files are made as a disk may have left them then.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/cache_store/store_fixture.h"
#include "tests/support/count.h"

using namespace efimd;
using namespace efimd::test;

namespace {

namespace fs = std::filesystem;

struct Operation {
  enum class Kind { kWrite, kTruncate, kHole, kSync, kUnlink };
  Kind kind = Kind::kWrite;
  std::string file;
  std::size_t offset = 0;  ///< of a truncation the new size
  std::size_t size = 0;
  std::vector<std::byte> bytes = {};
};

/// What is noted, while a folder is named. One thread writes the store here.
struct Notes {
  std::string folder;
  std::vector<Operation> operations;
  bool gives_blocks_back = true;  ///< the file system, inside a file
};
Notes& notes() {
  static Notes kept;
  return kept;
}

/// The file's name within the folder; empty for one that lies elsewhere.
std::string name_of(int descriptor) {
  if (notes().folder.empty()) return {};
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (::readlink(link.c_str(), path.data(), path.size() - 1) <= 0) return {};
  const std::string_view text(path.data());
  return text.starts_with(notes().folder + "/")
             ? std::string(text.substr(notes().folder.size() + 1))
             : std::string();
}

void note(int descriptor, Operation operation) {
  operation.file = name_of(descriptor);
  if (!operation.file.empty()) notes().operations.push_back(std::move(operation));
}

ssize_t noted_write(int descriptor, const void* bytes, std::size_t size, off_t offset) {
  const auto* const begin = static_cast<const std::byte*>(bytes);
  note(
      descriptor,
      {Operation::Kind::kWrite, {}, static_cast<std::size_t>(offset), size, {begin, begin + size}});
  return ::syscall(SYS_pwrite64, descriptor, bytes, size, offset);
}

int noted_truncate(int descriptor, off_t size) {
  note(descriptor, {Operation::Kind::kTruncate, {}, static_cast<std::size_t>(size), 0});
  return static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
}

}  // namespace

extern "C" {
ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, off_t offset) {
  return noted_write(descriptor, bytes, size, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, std::size_t size, off64_t offset) {
  return noted_write(descriptor, bytes, size, offset);
}
int ftruncate(int descriptor, off_t size) noexcept { return noted_truncate(descriptor, size); }
int ftruncate64(int descriptor, off64_t size) noexcept { return noted_truncate(descriptor, size); }
int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  if (!notes().gives_blocks_back) {
    errno = EOPNOTSUPP;
    return -1;
  }
  note(descriptor, {Operation::Kind::kHole,
                    {},
                    static_cast<std::size_t>(offset),
                    static_cast<std::size_t>(size)});
  return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, size));
}
int fdatasync(int descriptor) {
  note(descriptor, {Operation::Kind::kSync, {}});
  return 0;  // the disk's part is played here
}
int fsync(int descriptor) { return fdatasync(descriptor); }
int unlink(const char* path) noexcept {
  const std::string_view text(path);
  if (!notes().folder.empty() && text.starts_with(notes().folder + "/"))
    notes().operations.push_back(
        {Operation::Kind::kUnlink, std::string(text.substr(notes().folder.size() + 1))});
  return static_cast<int>(::syscall(SYS_unlink, path));
}
}

namespace {

constexpr int kPages = 40;
constexpr std::size_t kSectorBytes = 512;

/// What the store held when so many operations were noted.
struct Held {
  std::size_t operations = 0;
  std::bitset<kPages> pages;
  std::bitset<kPages> moved;  ///< those that were given to keep: they may have changed their slots
};

/// Keeps, gives up and purges pages, so that slots change hands; between two rounds the budget shrinks.
std::vector<Held> use_store(const fs::path& folder, unsigned seed) {
  std::vector<Held> history;
  OpenStore store;
  const auto open = [&](std::size_t pages) {
    store = {};
    store = open_store(folder, budget_for(pages));
    REQUIRE(store);
  };
  open(kPages / 2);
  std::mt19937 random(seed);
  for (int round = 0; round < 30; ++round) {
    if (round == 15) open(kPages / 4);
    const auto arena = store->use_arena(test_arena());
    REQUIRE(arena);
    const std::string uri = "file:///" + std::to_string(random() % 4);
    std::vector<TestPage> pages;
    std::vector<store::NewPage> fresh;
    std::bitset<kPages> chosen;
    for (int i = 0; i < 3; ++i) {
      const auto number = random() % kPages;
      chosen.set(number);
      pages.push_back(test_page(static_cast<int>(number)));
    }
    for (const TestPage& page : pages) fresh.push_back(page.of(uri));
    static_cast<void>(store->keep(*arena, fresh));
    if (random() % 8 == 0) static_cast<void>(store->purge(uri));
    Held held;
    held.moved = chosen;
    for (int number = 0; number < kPages; ++number)
      held.pages[static_cast<std::size_t>(number)] = store->holds(test_page(number).digest);
    held.operations = notes().operations.size();
    history.push_back(held);
  }
  return history;
}

/// The pages that a loss after `moment` operations must leave: kept before, and not given up since,
/// nor by what was going on.
std::bitset<kPages> lasting(const std::vector<Held>& history, std::size_t moment) {
  std::bitset<kPages> pages;
  for (const Held& held : history) {
    if (held.operations > moment) return pages & held.pages & ~held.moved;
    pages = held.pages;
  }
  return pages;
}

using Bytes = std::vector<std::byte>;

void do_to(Bytes& bytes, const Operation& operation, std::size_t size_max) {
  const std::size_t size = std::min(operation.size, size_max);
  switch (operation.kind) {
    case Operation::Kind::kWrite:
      bytes.resize(std::max(bytes.size(), operation.offset + size));
      std::copy_n(operation.bytes.begin(), size,
                  bytes.begin() + static_cast<std::ptrdiff_t>(operation.offset));
      break;
    case Operation::Kind::kTruncate:
      bytes.resize(operation.offset);
      break;
    case Operation::Kind::kHole:
      for (std::size_t at = operation.offset; at < std::min(bytes.size(), operation.offset + size);
           ++at)
        bytes[at] = {};
      break;
    case Operation::Kind::kSync:
    case Operation::Kind::kUnlink:
      break;
  }
}

/// One file of the disk: what is safe, and what was asked for since.
struct OnDisk {
  Bytes safe;
  std::vector<const Operation*> since;
};
using Disk = std::map<std::string, OnDisk>;

void take(Disk& disk, const Operation& operation) {
  if (operation.kind == Operation::Kind::kUnlink) {
    disk.erase(operation.file);
    return;
  }
  OnDisk& file = disk[operation.file];
  if (operation.kind != Operation::Kind::kSync) return file.since.push_back(&operation);
  for (const Operation* each : file.since) do_to(file.safe, *each, each->size);
  file.since.clear();
}

/// The files as they may be found after the power is back.
void write_disk(const Disk& disk, const fs::path& folder, std::mt19937& random) {
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms::owner_all);
  for (const auto& [name, file] : disk) {
    Bytes bytes = file.safe;
    std::vector<const Operation*> since = file.since;
    if (random() % 2 == 0) std::shuffle(since.begin(), since.end(), random);
    for (const Operation* operation : since) {
      const auto fate = random() % 4;
      if (fate == 0) continue;  // lost
      const std::size_t sectors = operation->size / kSectorBytes + 1;
      do_to(bytes, *operation, fate == 1 ? random() % sectors * kSectorBytes : operation->size);
    }
    write_file(folder / name, bytes);
    fs::permissions(folder / name, fs::perms::owner_read | fs::perms::owner_write);
  }
}

}  // namespace

TEST_CASE("a loss of power at any moment leaves what was kept, and no wrong page") {
  const int count = times("EFIMD_POWER_LOSSES", 200);
  constexpr int kOfOneRun = 50;
  std::mt19937 random(11);
  std::size_t right = 0, lasted = 0;
  for (int done = 0; done < count;) {
    const ScratchFolder written;
    fs::create_directory(written.store());
    fs::permissions(written.store(), fs::perms::owner_all);
    notes() = {fs::canonical(written.store()).string(), {}, done % (2 * kOfOneRun) == 0};
    const std::vector<Held> history = use_store(written.store(), static_cast<unsigned>(done));
    const std::vector<Operation> operations = std::move(notes().operations);
    notes() = {};
    REQUIRE(operations.size() > 100);
    REQUIRE(std::ranges::count(operations, Operation::Kind::kSync, &Operation::kind) > 10);
    for (int i = 0; i < kOfOneRun && done < count; ++i, ++done) {
      const std::size_t moment = random() % operations.size();
      Disk disk;
      for (std::size_t at = 0; at < moment; ++at) take(disk, operations[at]);
      const ScratchFolder found;
      write_disk(disk, found.store(), random);
      const OpenStore store = open_store(found.store());
      INFO("loss " << done << ", after operation " << moment << " of " << operations.size());
      REQUIRE(store);
      const std::bitset<kPages> must_last = lasting(history, moment);
      for (int number = 0; number < kPages; ++number) {
        const Found page = look_up(*store.store, number);
        REQUIRE(page != Found::kWrong);
        right += page == Found::kRight ? 1 : 0;
        if (must_last[static_cast<std::size_t>(number)]) {
          ++lasted;
          REQUIRE(page == Found::kRight);
        }
      }
      REQUIRE(store->verify());
    }
  }
  CHECK(right > static_cast<std::size_t>(count));  // else nothing was kept that could be wrong
  CHECK(lasted > static_cast<std::size_t>(count));
}
