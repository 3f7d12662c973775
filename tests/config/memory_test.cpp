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
  const fs::path groups = folder / "sys/fs/cgroup";
  write(folder / "proc/self/cgroup", "1:cpu:/elsewhere\n0::/box/inner\n");
  const auto limit = [&] { return cgroup_memory_bytes(folder.path()); };
  CHECK(limit() == 0);
  write(groups / "box/inner/memory.max", "max\n");
  CHECK(limit() == 0);
  write(groups / "box/memory.max", "536870912\n");
  CHECK(limit() == 536870912);
  write(groups / "box/inner/memory.max", "1000000\n");
  CHECK(limit() == 1000000);
}

TEST_CASE("the first version of control groups limits, too, and has a number for no limit") {
  const TempDir folder;
  const fs::path groups = folder / "sys/fs/cgroup/memory";
  write(folder / "proc/self/cgroup", "5:cpu,memory:/box/inner\n1:name=systemd:/\n0::/\n");
  const auto limit = [&] { return cgroup_memory_bytes(folder.path()); };
  write(groups / "memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(limit() == 0);
  write(groups / "box/inner/memory.limit_in_bytes", "844222464\n");
  CHECK(limit() == 844222464);
  write(groups / "box/memory.limit_in_bytes", "1000000\n");
  CHECK(limit() == 1000000);
}

TEST_CASE("a process without control groups has no limit") {
  const TempDir folder;
  CHECK(cgroup_memory_bytes(folder.path()) == 0);
  write(folder / "proc/self/cgroup", "nonsense\n0::/../../..\n");
  CHECK(cgroup_memory_bytes(folder.path()) == 0);
}
