#include "daemon/files/tracked_files.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;

namespace {

/// A working tree of git's own making, whose index has this version.
struct Tree {
  explicit Tree(int version, const std::string& init = "init -q .") {
    for (const char* name :
         {"a.c", "deep/er/b.c", "deep/er/bb.c", "deep/very_long_name_of_a_file.c"}) {
      std::filesystem::create_directories((folder.path() / name).parent_path());
      std::ofstream(folder.path() / name) << "int a;\n";
    }
    run(init + " && git add -A && git update-index --index-version " + std::to_string(version));
  }
  bool run(const std::string& command) const {
    const std::string whole =
        "cd '" + folder.path().string() + "' && git " + command + " >/dev/null 2>&1";
    return std::system(whole.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
  }
  std::string path(const std::string& name) const {
    return (folder.path() / name).generic_string();
  }
  std::string index() const {
    std::ifstream stream(folder.path() / ".git/index", std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  test::TempDir folder;
};

}  // namespace

TEST_CASE("what git tracks is read from its index, in each version") {
  for (const int version : {2, 3, 4}) {
    CAPTURE(version);
    const Tree tree(version);
    // An entry with more flags makes version 3.
    if (version == 3) REQUIRE(tree.run("update-index --skip-worktree a.c"));
    const TrackedFiles tracked = TrackedFiles::of(tree.folder.path() / "deep");
    CHECK(tracked.count() == 4);
    for (const char* name :
         {"a.c", "deep/er/b.c", "deep/er/bb.c", "deep/very_long_name_of_a_file.c"})
      CHECK(tracked.has(tree.path(name)));
    CHECK_FALSE(tracked.has(tree.path("deep/er")));
    CHECK_FALSE(tracked.has(tree.path("c.c")));
    CHECK(tracked.has_below(tree.path("deep")));
    CHECK_FALSE(tracked.has_below(tree.path("dee")));
    CHECK_FALSE(tracked.has_below(tree.path("a.c")));
  }
}

TEST_CASE("a repository may name its objects by SHA-256") {
  for (const int version : {2, 4}) {
    const Tree tree(version, "init -q --object-format=sha256 .");
    if (tree.index().empty()) return;  // git before 2.29
    const TrackedFiles tracked = TrackedFiles::of(tree.folder.path());
    CHECK(tracked.count() == 4);
    CHECK(tracked.has(tree.path("deep/very_long_name_of_a_file.c")));
  }
}

TEST_CASE("an added working tree has an index of its own") {
  const Tree tree(2);
  REQUIRE(tree.run("-c user.name=a -c user.email=a@b commit -qm a"));
  REQUIRE(tree.run("worktree add -q added"));
  CHECK(TrackedFiles::of(tree.folder.path() / "added").has(tree.path("added/deep/er/b.c")));
}

TEST_CASE("a damaged index has no files, and none outside of a working tree") {
  const test::TempDir folder;
  CHECK(TrackedFiles::of(folder.path()).count() == 0);
  for (const int version : {2, 4}) {
    const std::string whole = Tree(version).index();
    REQUIRE(TrackedFiles::parse(whole, "/p").count() == 4);
    for (std::size_t bytes = 0; bytes < 12 + 4 * 62; ++bytes)
      CHECK(TrackedFiles::parse(std::string_view(whole).substr(0, bytes), "/p").count() == 0);
    std::mt19937 random(7);
    for (int i = 0; i < 2000; ++i) {
      std::string bad = whole;
      for (int j = 0; j < 4; ++j) bad[random() % bad.size()] = static_cast<char>(random());
      CHECK(TrackedFiles::parse(bad, "/p").count() <= bad.size() / 62);
    }
  }
}
