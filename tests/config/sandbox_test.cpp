#include "daemon/config/sandbox.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>

#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;
using efimd::test::TempDir;
namespace fs = std::filesystem;

namespace {

/// What `tried` returns in a process of its own, which it may confine.
int in_child(const std::function<int()>& tried) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(tried());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

void write(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "text";
}
bool reads(const fs::path& file) { return std::ifstream(file).get() == 't'; }
bool writes(const fs::path& file) { return static_cast<bool>(std::ofstream(file) << "text"); }

constexpr int kNone = 100;  ///< this kernel has no landlock

}  // namespace

TEST_CASE("a confined thread opens what it may, and nothing beside") {
  const TempDir folder;
  for (const char* name : {"read/a", "write/a", "other/a"}) write(folder / name);
  const int came = in_child([&] {
    if (!confine_thread({{folder / "read", folder / "missing"}, {folder / "write"}})) return kNone;
    return int{reads(folder / "read/a")} + 2 * int{writes(folder / "read/b")} +
           4 * int{writes(folder / "write/b")} + 8 * int{reads(folder / "other/a")} +
           16 * int{reads(folder / "write/a")};
  });
  if (came == kNone) {
    WARN("not tested: this kernel has no landlock");
    return;
  }
  CHECK(came == 1 + 4 + 16);
}

TEST_CASE("a thread that reads projects reads all but folders of secrets") {
  const TempDir home;
  for (const char* name : {"code/a", ".ssh/a", "notes"}) write(home / name);
  const int came = in_child([&] {
    const Reachable files = user_files(home.path(), [](const fs::path& path, bool is_folder) {
      return is_folder && path.filename() == ".ssh";
    });
    if (!confine_thread(files)) return kNone;
    return int{reads(home / "code/a")} + 2 * int{reads(home / ".ssh/a")} +
           4 * int{reads(home / "notes")} +
           8 * int{reads("/etc/hostname") || reads("/etc/passwd")} +
           16 * int{writes(home / "code/b")};
  });
  if (came == kNone) {
    WARN("not tested: this kernel has no landlock");
    return;
  }
  CHECK((came & ~8) == 1 + 4);
}
