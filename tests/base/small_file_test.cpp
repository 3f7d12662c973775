#include "base/small_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/temp_dir.h"

using namespace efimd;
namespace fs = std::filesystem;

TEST_CASE("a small file is replaced as a whole, for its owner alone") {
  const test::TempDir folder;
  const fs::path file = folder.path() / "new" / "state";
  CHECK(read_small_file(file, 10).empty());
  REQUIRE(replace_small_file(file, "first"));
  REQUIRE(replace_small_file(file, "second"));
  CHECK(read_small_file(file, 10) == "second");
  CHECK(read_small_file(file, 3) == "sec");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), {}) == 1);
}

TEST_CASE("pipes in the place of a small file hold nothing up") {
  const test::TempDir folder;
  const fs::path file = folder.path() / "state";
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  REQUIRE(::mkfifo((file.string() + ".next").c_str(), 0600) == 0);
  CHECK(read_small_file(file, 10).empty());
  REQUIRE(replace_small_file(file, "text"));
  CHECK(read_small_file(file, 10) == "text");
}

TEST_CASE("a small file that cannot be written is named") {
  const test::TempDir folder;
  std::ofstream(folder.path() / "file") << "no folder";
  const auto written = replace_small_file(folder.path() / "file" / "state", "text");
  REQUIRE_FALSE(written);
  CHECK(written.error().fault == Fault::kIo);
  CHECK(written.error().message().find("file/state.next cannot be written") != std::string::npos);
  fs::create_directory(folder.path() / "state");
  std::ofstream(folder.path() / "state" / "inside") << "so it cannot be replaced";
  CHECK_FALSE(replace_small_file(folder.path() / "state", "text"));
}
