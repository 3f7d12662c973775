#include <catch2/catch.hpp>
#include <fstream>

#include "daemon/config/this_system.h"
#include "tests/support/temp_dir.h"

using namespace efimd::service;
using efimd::test::TempDir;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("the least limit of the control groups above counts") {
  const TempDir folder;
  write(folder / "own", "1:cpu:/elsewhere\n0::/box/inner\n");
  const auto limit = [&] { return cgroup_memory_bytes(folder / "own", folder / "groups"); };
  CHECK(limit() == 0);
  write(folder / "groups/box/inner/memory.max", "max\n");
  CHECK(limit() == 0);
  write(folder / "groups/box/memory.max", "536870912\n");
  CHECK(limit() == 536870912);
  write(folder / "groups/box/inner/memory.max", "1000000\n");
  CHECK(limit() == 1000000);
}

TEST_CASE("a process without control groups has no limit") {
  const TempDir folder;
  CHECK(cgroup_memory_bytes(folder / "missing", folder.path()) == 0);
  write(folder / "own", "nonsense\n0::/../../..\n");
  CHECK(cgroup_memory_bytes(folder / "own", folder / "groups") == 0);
}
