// A database that another program has locked is left alone.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "cache_store/database.h"
#include "cache_store/metadata.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::store;

TEST_CASE("a database that another program has locked is not written under its lock") {
  const test::TempDir folder;
  const auto file = folder / "store.db";
  std::vector<std::string> notes;
  REQUIRE(Metadata::open(file, notes));
  int told[2], ended[2];
  REQUIRE(::pipe(told) == 0);
  REQUIRE(::pipe(ended) == 0);
  const pid_t other = ::fork();  // locks of one process do not exclude each other
  if (other == 0) {
    ::close(ended[1]);
    auto database = Database::open(file, nullptr);
    char byte = database && database->run("PRAGMA locking_mode = EXCLUSIVE") &&
                        database->run("BEGIN EXCLUSIVE")
                    ? 'y'
                    : 'n';
    const bool told_and_ended = ::write(told[1], &byte, 1) == 1 && ::read(ended[0], &byte, 1) == 0;
    ::_exit(told_and_ended ? 0 : 1);
  }
  char locked = 'n';
  REQUIRE(::read(told[0], &locked, 1) == 1);
  REQUIRE(locked == 'y');
  const auto refused = Metadata::open(file, notes);
  for (const int end : {told[0], told[1], ended[0], ended[1]}) ::close(end);
  REQUIRE(::waitpid(other, nullptr, 0) == other);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message().find("another program has locked it") != std::string::npos);
  CHECK(notes.empty());
  CHECK(Metadata::open(file, notes));
}
