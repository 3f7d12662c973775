#include "daemon/config/local_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;
using efimd::test::TempDir;
namespace fs = std::filesystem;

namespace {

unsigned mode_of(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 0777U : 0;
}

Deadline now() { return std::chrono::steady_clock::now(); }

}  // namespace

TEST_CASE("the socket's folder is made private, parents and all") {
  const TempDir temp;
  const fs::path folder = temp / "a/b/efimd";
  REQUIRE(ensure_private_directory(folder));
  CHECK(mode_of(folder) == 0700);
  CHECK(ensure_private_directory(folder));
}

TEST_CASE("a socket folder that is open to others is refused and left as it is") {
  const TempDir temp;
  const fs::path folder = temp / "open";
  fs::create_directory(folder);
  for (const mode_t mode : {0755U, 0770U, 0701U}) {
    ::chmod(folder.c_str(), mode);
    const auto checked = ensure_private_directory(folder);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().message().find("chmod 700") != std::string::npos);
    CHECK(checked.error().message().find("EFIMD_RUNTIME_DIR") != std::string::npos);
    CHECK(mode_of(folder) == mode);
  }
}

TEST_CASE("a symbolic link or a file in the place of the socket's folder is refused") {
  const TempDir temp;
  fs::create_directory(temp / "real");
  ::chmod((temp / "real").c_str(), 0700);
  fs::create_directory_symlink(temp / "real", temp / "link");
  std::ofstream(temp / "file") << "x";
  CHECK_FALSE(ensure_private_directory(temp / "link"));
  CHECK_FALSE(ensure_private_directory(temp / "file"));
}

TEST_CASE("a lock has one holder, carries its pid, and is free once let go") {
  const TempDir temp;
  const fs::path path = temp / "lock";
  CHECK_FALSE(LockFile::is_held(path));
  {
    auto first = LockFile::try_lock(path);
    REQUIRE(first);
    REQUIRE(*first);
    CHECK(LockFile::is_held(path));
    CHECK(LockFile::last_holder(path) == ::getpid());
    const auto second = LockFile::try_lock(path);
    REQUIRE(second);
    CHECK_FALSE(*second);
    const auto late = LockFile::lock(path, now());
    REQUIRE_FALSE(late);
    CHECK(late.error().fault == Fault::kNotReady);
    CHECK(late.error().message().find(std::to_string(::getpid())) != std::string::npos);
  }
  CHECK_FALSE(LockFile::is_held(path));
  CHECK(LockFile::lock(path, now()));
  CHECK(mode_of(path) == 0600);
}

TEST_CASE("a lock in a folder that is not there is an error, not a free lock") {
  const TempDir temp;
  CHECK_FALSE(LockFile::try_lock(temp / "no/lock"));
}

TEST_CASE("a listening socket is the user's alone, and its peer is this user") {
  const TempDir temp;
  const fs::path path = temp / "s";
  const auto listening = listen_at(path);
  REQUIRE(listening);
  CHECK(mode_of(path) == 0600);
  const auto connected = connect_to(path);
  REQUIRE(connected);
  const UniqueFd accepted(::accept(listening->get(), nullptr, nullptr));
  REQUIRE(accepted);
  CHECK(peer_is_this_user(accepted.get()));
  CHECK(peer_is_this_user(connected->get()));
}

TEST_CASE("nothing listening is kNotFound, whether the socket's file is there or not") {
  const TempDir temp;
  const fs::path path = temp / "s";
  CHECK(connect_to(path).error().fault == Fault::kNotFound);
  { const auto dead = listen_at(path); }
  REQUIRE(fs::exists(path));
  CHECK(connect_to(path).error().fault == Fault::kNotFound);
  const auto again = listen_at(path);
  REQUIRE(again);
  CHECK(connect_to(path));
}

TEST_CASE("readiness is one line: ready, or the reason") {
  const auto said = [](const Result<void>& outcome) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd reader(ends[0]);
    report_ready(UniqueFd(ends[1]), outcome);
    std::array<char, 64> bytes{};
    const ssize_t size = ::read(reader.get(), bytes.data(), bytes.size());
    return std::string(bytes.data(), static_cast<std::size_t>(size));
  };
  CHECK(said({}) == kReadyLine);
  CHECK(said(fail(Fault::kIo, "no", "do")) == "no; do\n");
}
