#include "daemon/files/repository.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "lsp/uri.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

prompt::FileName name_of(const fs::path& file) {
  return service::file_name_of(lsp::file_uri(file.string()));
}

}  // namespace

TEST_CASE("a file is named from its repository's root") {
  const test::TempDir folder;
  fs::create_directories(folder / "project/.git");
  CHECK(name_of(folder / "project/a.c") == prompt::FileName{"project", "a.c"});
  CHECK(name_of(folder / "project/src/deep/b.c") == prompt::FileName{"project", "src/deep/b.c"});
  // A model that reads a path ending in .ipynb may expect JSON.
  const std::string cells = lsp::file_uri((folder / "project/n.ipynb").string()) + "#.py";
  CHECK(service::file_name_of(cells) == prompt::FileName{"project", "n.ipynb.py"});
}

TEST_CASE("in an added working tree it has the same name as in the first") {
  const test::TempDir folder;
  const fs::path own = folder / "project/.git/worktrees/fix";
  write(own / "commondir", "../..\n");
  write(folder / "fix/.git", "gitdir: " + own.string() + "\n");
  CHECK(name_of(folder / "fix/src/a.c") == prompt::FileName{"project", "src/a.c"});
  const auto repository = service::repository_of(folder / "fix/src/a.c");
  REQUIRE(repository);
  CHECK(repository->root == folder / "fix");
  CHECK((repository->git / "HEAD").lexically_normal() == folder / "project/.git/HEAD");
}

TEST_CASE("a bare repository's working tree has the name without .git") {
  const test::TempDir folder;
  write(folder / "project.git/worktrees/fix/commondir", "../..\n");
  write(folder / "fix/.git", "gitdir: ../project.git/worktrees/fix\n");
  CHECK(name_of(folder / "fix/a.c") == prompt::FileName{"project", "a.c"});
}

TEST_CASE("a repository has its whole name, and a hidden bare one that of its folder") {
  const test::TempDir folder;
  write(folder / "project/.bare/worktrees/fix/commondir", "../..\n");
  write(folder / "project/fix/.git", "gitdir: ../.bare/worktrees/fix\n");
  CHECK(name_of(folder / "project/fix/a.c") == prompt::FileName{"project", "a.c"});
  write(folder / "app/libs/three.js/.git", "gitdir: ../../.git/modules/libs/three.js\n");
  CHECK(name_of(folder / "app/libs/three.js/a.js") == prompt::FileName{"three.js", "a.js"});
}

TEST_CASE("outside any repository a file has its name alone, and what is no file none") {
  const test::TempDir folder;
  CHECK(name_of(folder / "src/a.c") == prompt::FileName{"", "a.c"});
  CHECK(service::file_name_of("untitled:Untitled-1") == prompt::FileName{});
  write(folder / "odd/.git", std::string(9000, 'x'));
  CHECK(name_of(folder / "odd/a.c").path == "a.c");
}
