#include "base/mapped_file.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace efimd {
namespace {

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

/// A file of the folder for temporary ones, full of 'x', that goes with the test.
struct Scratch {
  std::filesystem::path path;
  explicit Scratch(std::size_t bytes) {
    std::string name = std::filesystem::temp_directory_path() / "efimd-mapped-XXXXXX";
    ::close(::mkstemp(name.data()));
    path = name;
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
  }
  ~Scratch() { std::filesystem::remove(path); }
};

bool all(std::span<const std::byte> bytes, char wanted) {
  return std::ranges::all_of(bytes, [&](std::byte byte) { return byte == std::byte(wanted); });
}

}  // namespace

TEST_CASE("a mapped file is the file's bytes") {
  const Scratch scratch(2 * kPage + 5);
  const auto file = MappedFile::open(scratch.path);
  REQUIRE(file);
  CHECK(file->bytes().size() == 2 * kPage + 5);
  CHECK(all(file->bytes(), 'x'));
  CHECK(file->intact());
}

TEST_CASE("what is taken away from a mapped file reads as zeros, and the file says so") {
  const Scratch scratch(4 * kPage);
  auto file = MappedFile::open(scratch.path);
  REQUIRE(file);
  std::filesystem::resize_file(scratch.path, kPage);
  CHECK_FALSE(file->intact());
  CHECK(all(file->bytes().subspan(3 * kPage), '\0'));
  CHECK(all(file->bytes().subspan(kPage, 2 * kPage), '\0'));
  CHECK(all(file->bytes().first(kPage), 'x'));
  // Zeros were read: putting the bytes back does not make that good.
  std::filesystem::resize_file(scratch.path, 4 * kPage);
  CHECK_FALSE(file->intact());
  const MappedFile moved = std::move(*file);
  CHECK_FALSE(moved.intact());
}

TEST_CASE("a file that was written to is not what was mapped") {
  const Scratch scratch(2 * kPage);
  const auto file = MappedFile::open(scratch.path);
  REQUIRE(file);
  const auto written = std::filesystem::last_write_time(scratch.path);
  std::filesystem::last_write_time(scratch.path, written + std::chrono::seconds(1));
  CHECK_FALSE(file->intact());
}

TEST_CASE("a new file under the same name leaves the mapped one as it is") {
  const Scratch scratch(kPage);
  const auto file = MappedFile::open(scratch.path);
  REQUIRE(file);
  const Scratch other(1);
  std::filesystem::rename(other.path, scratch.path);
  CHECK(all(file->bytes(), 'x'));
  CHECK(file->intact());
}

TEST_CASE("what was given back is read from the file again, and nothing else is touched") {
  const Scratch scratch(4 * kPage);
  const auto file = MappedFile::open(scratch.path);
  REQUIRE(file);
  file->give_back(file->bytes().subspan(10, 3 * kPage));  // pages 1 and 2 are whole
  CHECK(all(file->bytes(), 'x'));
  CHECK(file->intact());
  std::vector<std::byte> own(4 * kPage, std::byte{'y'});
  file->give_back(own);
  CHECK(all(own, 'y'));
}

TEST_CASE("a mapping without a file behind it is not guarded any more") {
  const Scratch scratch(2 * kPage);
  for (int i = 0; i < 200; ++i) {  // more than there are guards
    const auto file = MappedFile::open(scratch.path);
    REQUIRE(file);
    REQUIRE(file->intact());
  }
}

TEST_CASE("a bus error of anyone else ends the process as ever") {
  const Scratch scratch(kPage);
  const auto file = MappedFile::open(scratch.path);
  REQUIRE(file);
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGBUS);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGBUS);
}

}  // namespace efimd
