#include "daemon/files/exclusions.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "daemon/config/glob.h"

using namespace efimd::service;
using Reason = Exclusions::Reason;

namespace {

namespace fs = std::filesystem;

struct Repository {
  Repository() {
    std::string name = (fs::temp_directory_path() / "efimd-ignore-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root = name;
    fs::create_directory(root / ".git");
  }
  ~Repository() { fs::remove_all(root); }
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  bool ignores(const fs::path& file) const { return !gitignored_by(root / file, {}).empty(); }
  fs::path root;
};

Reason reason(const Exclusions& exclusions, const std::string& uri) {
  return exclusions.judge(uri).reason;
}

}  // namespace

TEST_CASE("globs match as those of .gitignore do") {
  CHECK(glob_match("*.py", "a.py"));
  CHECK_FALSE(glob_match("*.py", "a/b.py"));
  CHECK(glob_match("a?c[0-9][!x]", "abc5y"));
  CHECK_FALSE(glob_match("a?c[0-9][!x]", "abc5x"));
  CHECK_FALSE(glob_match("a?c", "a/c"));
  CHECK(glob_match("**/b", "b"));
  CHECK(glob_match("**/b", "x/y/b"));
  CHECK_FALSE(glob_match("**/b", "xb"));
  CHECK(glob_match("a/**", "a/b/c"));
  CHECK_FALSE(glob_match("a/**", "ab"));
  CHECK(glob_match("a/**/b", "a/b"));
  CHECK(glob_match("a/**/b", "a/x/y/b"));
  CHECK(glob_match("**/", ""));
  CHECK(glob_match("a*/b", "axx/b"));
  CHECK_FALSE(glob_match("ab*b", "ab"));
  CHECK_FALSE(glob_match("*.pem", "a/b.pem"));
  CHECK_FALSE(glob_match("plain", "plai"));
  CHECK(glob_match("\\*", "*"));
  CHECK_FALSE(glob_match("\\*", "x"));
  CHECK(glob_match("[]a]", "]"));
  CHECK(glob_match("[\\]a]b", "]b"));
  CHECK(glob_match("[[:digit:]_]x", "7x"));
  CHECK(glob_match("[[:digit:]_]x", "_x"));
  CHECK_FALSE(glob_match("[[:digit:]_]x", "dx"));
  CHECK_FALSE(glob_match("[![:upper:]a]", "A"));
  CHECK(glob_match("[![:upper:]a]", "b"));
  CHECK_FALSE(glob_match("[[:nonsense:]]", "n"));
  CHECK(glob_match("[[:alpha", "[[:alpha"));
  CHECK(glob_match("[abc", "[abc"));
  CHECK(glob_match("", ""));
}

TEST_CASE("a pattern made to take forever does not") {
  std::string pattern, text(4000, 'a');
  for (int i = 0; i < 500; ++i) pattern += "*a";
  CHECK_FALSE(glob_match(pattern + "b", text));
  CHECK_FALSE(glob_match(std::string(5000, '*'), "a"));
}

TEST_CASE("files that hold secrets are known by name, in any case and any folder") {
  const Exclusions exclusions;
  for (const char* uri :
       {"file:///p/.env", "file:///p/.env.local", "file:///p/server.PEM", "file:///p/tls.key",
        "file:///home/u/.ssh/config", "file:///home/u/.gnupg/x/y", "file:///p/id_ed25519",
        "file:///home/u/.netrc", "file:///p/.npmrc", "file:///home/u/.aws/credentials",
        "file:///p/credentials.json", "untitled:.env", "file:///p/%2Eenv"}) {
    INFO(uri);
    CHECK(reason(exclusions, uri) == Reason::kSecret);
  }
  for (const char* uri :
       {"file:///p/environment.py", "file:///p/keys.py", "file:///p/identity.c"}) {
    INFO(uri);
    CHECK(reason(exclusions, uri) == Reason::kNone);
  }
}

TEST_CASE("only files may be stored") {
  const Exclusions exclusions;
  CHECK(reason(exclusions, "untitled:Untitled-1") == Reason::kScheme);
  CHECK(reason(exclusions, "vscode-notebook-cell:/a.ipynb#1") == Reason::kScheme);
  CHECK(reason(exclusions, "git:/a.py?ref=HEAD") == Reason::kScheme);
  CHECK(exclusions.judge("file:///a.py").may_be_stored());
}

TEST_CASE("the user's globs exclude names, folders and paths") {
  const Exclusions exclusions({"*.sql", "private", "/srv/client/**", "~/diary"}, false);
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  CHECK(exclusions.judge("file:///p/a.sql").pattern == "*.sql");
  CHECK(reason(exclusions, "file:///p/private/deep/a.py") == Reason::kExclude);
  CHECK(reason(exclusions, "file:///srv/client/x/a.py") == Reason::kExclude);
  CHECK(reason(exclusions, "file://" + home + "/diary/today.md") == Reason::kExclude);
  CHECK(reason(exclusions, "file:///srv/clients/a.py") == Reason::kNone);
  CHECK(reason(exclusions, "file:///p/a.sql.py") == Reason::kNone);
}

TEST_CASE("a glob of several parts that begins with none of a path excludes in every folder") {
  const Exclusions exclusions({"docs/*.md", "./notes/own/", "**/keys/x.py", "a/**/b.py"}, false);
  for (const char* uri :
       {"file:///docs/a.md", "file:///home/p/docs/a.md", "file:///p/notes/own/x/a.py",
        "file:///p/q/keys/x.py", "file:///p/a/b.py", "file:///p/a/c/d/b.py"}) {
    INFO(uri);
    CHECK(reason(exclusions, uri) == Reason::kExclude);
  }
  for (const char* uri : {"file:///p/mydocs/a.md", "file:///p/docs/deep/a.md", "file:///p/own/a.py",
                          "file:///p/docs/a.py"}) {
    INFO(uri);
    CHECK(reason(exclusions, uri) == Reason::kNone);
  }
}

TEST_CASE(".gitignore is read from the file's folder up to the repository's root") {
  const Repository repository;
  repository.write(".gitignore", "*.log\n# a comment\nbuild/\n/top.py\n!keep.log\ndocs/*.md  \n");
  repository.write("sub/.gitignore", "local.py\n!*.log\n");
  CHECK(repository.ignores("a.log"));
  CHECK(repository.ignores("deep/a.log"));
  CHECK_FALSE(repository.ignores("keep.log"));
  CHECK(repository.ignores("build/x/a.py"));
  CHECK_FALSE(repository.ignores("build"));  // a file of the folder's name
  CHECK(repository.ignores("top.py"));
  CHECK_FALSE(repository.ignores("sub/top.py"));
  CHECK(repository.ignores("docs/a.md"));
  CHECK_FALSE(repository.ignores("docs/x/a.md"));
  CHECK(repository.ignores("sub/local.py"));
  CHECK_FALSE(repository.ignores("local.py"));
  CHECK_FALSE(repository.ignores("sub/a.log"));  // taken in again below
  const std::string uri = "file://" + (repository.root / "a.log").string();
  CHECK(reason(Exclusions({}, true), uri) == Reason::kGitignore);
  CHECK(reason(Exclusions({}, false), uri) == Reason::kNone);
}

TEST_CASE("a byte order mark is no part of a pattern, and a name may begin with dots") {
  const Repository repository;
  repository.write(".gitignore", "\xEF\xBB\xBF*.log\n..odd\n");
  CHECK(repository.ignores("a.log"));
  CHECK(repository.ignores("..odd"));
  CHECK(repository.ignores("..odd/a.py"));
}

TEST_CASE("a repository's own excludes and the user's are git's, too") {
  const Repository repository;
  repository.write(".gitignore", "!kept.tmp\n");
  repository.write(".git/info/exclude", "mine/\n!both.log\n");
  repository.write("home/.gitconfig",
                   "[user]\nexcludesfile = wrong\n[core]\n\texcludesFile = ~/all\n");
  repository.write("home/all", "*.tmp\n*.log\n");
  repository.write("config/git/ignore", "*.swp\n");
  const auto ignores = [&](const char* file, const char* home, const char* config) {
    return !gitignored_by(repository.root / file,
                          {repository.root / home, repository.root / config})
                .empty();
  };
  CHECK(ignores("mine/a.py", "none", "none"));
  CHECK(ignores("a.tmp", "home", "none"));
  CHECK_FALSE(ignores("a.tmp", "none", "none"));
  CHECK_FALSE(ignores("kept.tmp", "home", "none"));
  CHECK_FALSE(ignores("both.log", "home", "none"));
  CHECK(ignores("a.swp", "none", "config"));
  CHECK_FALSE(ignores("a.swp", "home", "config"));  // the user named another file
}

TEST_CASE("in a working tree of its own the excludes are those of the repository") {
  const Repository repository;
  repository.write("main/.git/info/exclude", "mine.py\n");
  repository.write("main/.git/worktrees/tree/commondir", "../..\n");
  repository.write("tree/.git", "gitdir: ../main/.git/worktrees/tree\n");
  CHECK_FALSE(gitignored_by(repository.root / "tree/mine.py", {}).empty());
  CHECK(gitignored_by(repository.root / "tree/other.py", {}).empty());
}

TEST_CASE("outside any repository nothing is ignored") {
  const Repository repository;
  fs::remove(repository.root / ".git");
  repository.write(".gitignore", "*\n");
  CHECK_FALSE(repository.ignores("a.py"));
}
