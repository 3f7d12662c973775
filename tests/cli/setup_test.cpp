#include <glob.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/cli/setup/json_root.h"
#include "daemon/cli/setup/marked_block.h"
#include "daemon/cli/setup/step.h"
#include "daemon/cli/setup/user_file.h"
#include "daemon/config/version.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;
using efimd::test::TempDir;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

struct Sample {
  std::string path, text;
  Syntax syntax;
};

/// At most `count_max` files of a pattern, spread over all that fit it; those over 100 kB are left out.
void add(std::vector<Sample>& samples, const std::string& pattern, Syntax syntax,
         std::size_t count_max) {
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    const std::size_t step = std::max<std::size_t>(1, found.gl_pathc / count_max);
    for (std::size_t i = 0; i < found.gl_pathc; i += step)
      if (fs::is_regular_file(found.gl_pathv[i]) && fs::file_size(found.gl_pathv[i]) < 100'000)
        samples.push_back({found.gl_pathv[i], read(found.gl_pathv[i]), syntax});
  }
  ::globfree(&found);
}

/// The tests' own files, and whatever of the kind this machine has.
std::vector<Sample> real_files() {
  const std::string own = EFIMD_SETUP_FILES;
  std::vector<Sample> samples;
  add(samples, own + "/*.json", Syntax::kJson, 100);
  add(samples, own + "/*.lua", Syntax::kLua, 100);
  add(samples, own + "/*.el", Syntax::kLisp, 100);
  add(samples, own + "/vimrc", Syntax::kVim, 100);
  add(samples, own + "/*.toml", Syntax::kToml, 100);
  REQUIRE(samples.size() == 9);
  add(samples, "/usr/share/nvim/runtime/lua/vim/*.lua", Syntax::kLua, 30);
  add(samples, "/usr/share/vim/vim90/*.vim", Syntax::kVim, 30);
  add(samples, "/etc/vim/vimrc*", Syntax::kVim, 5);
  add(samples, "/usr/share/emacs/site-lisp/*.el", Syntax::kLisp, 30);
  add(samples, "/etc/emacs/site-start.d/*.el", Syntax::kLisp, 30);
  add(samples, "/usr/share/nodejs/*/package.json", Syntax::kJson, 60);
  add(samples, "/usr/share/nodejs/*/tsconfig.json", Syntax::kJson, 30);
  return samples;
}

std::string lines_for(Syntax syntax) {
  return syntax == Syntax::kJson ? "\"efimd.path\": \"/a \\\"b\\\"/efimd\"" : "one line\nanother\n";
}

/// What with_block() made is found again, and taking it out leaves the text; true if it took the text.
bool goes_round(std::string_view text, Syntax syntax) {
  const MadeFor made{text.size() % 2 == 0, static_cast<int>(text.size() % 3)};
  const auto changed = with_block(text, syntax, lines_for(syntax), made);
  if (!changed) return false;
  const auto found = find_block(*changed, syntax);
  REQUIRE(found);
  REQUIRE(*found);
  CHECK((*found)->lines == lines_for(syntax));
  CHECK((*found)->made == made);
  REQUIRE((*found)->rest == text);
  if (syntax != Syntax::kJson) return true;
  const auto before = read_json_root(text), after = read_json_root(*changed);
  REQUIRE(after);
  REQUIRE(after->keys.size() == before->keys.size() + 1);
  CHECK(after->keys.front() == "efimd.path");
  return true;
}

/// The only folder with programs, until it ends.
class OnPath {
 public:
  explicit OnPath(const fs::path& folder) { ::setenv("PATH", folder.c_str(), 1); }
  OnPath(const OnPath&) = delete;
  OnPath& operator=(const OnPath&) = delete;
  ~OnPath() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_ = std::getenv("PATH");
};

}  // namespace

TEST_CASE(
    "in real configuration files the lines are found again, and taking them out leaves every "
    "byte") {
  for (const Sample& sample : real_files()) {
    CAPTURE(sample.path);
    CHECK(goes_round(sample.text, sample.syntax));
  }
}

TEST_CASE("a configuration file that ends anywhere is refused or restored to the byte") {
  for (const Sample& sample : real_files()) {
    CAPTURE(sample.path);
    const std::size_t step = std::max<std::size_t>(1, sample.text.size() / 60);
    for (std::size_t end = 0; end < sample.text.size(); end += step) {
      CAPTURE(end);
      goes_round(std::string_view(sample.text).substr(0, end), sample.syntax);
    }
  }
}

TEST_CASE("JSON with comments stays what it was for a parser of JSON, but for the new member") {
  for (const Sample& sample : real_files()) {
    if (sample.syntax != Syntax::kJson) continue;
    CAPTURE(sample.path);
    const auto parsed = [](const std::string& text) {
      return nlohmann::json::parse(text, nullptr, false, true);
    };
    auto before = parsed(sample.text);
    if (before.is_discarded()) continue;  // trailing commas, which that parser does not take
    auto after = parsed(*with_block(sample.text, Syntax::kJson, lines_for(Syntax::kJson)));
    REQUIRE_FALSE(after.is_discarded());
    CHECK(after.at("efimd.path") == "/a \"b\"/efimd");
    after.erase("efimd.path");
    CHECK(after == before);
  }
}

TEST_CASE("lines that the user changed are left to the user") {
  for (const Syntax syntax : {Syntax::kJson, Syntax::kLua, Syntax::kLisp, Syntax::kVim}) {
    std::string text =
        *with_block(syntax == Syntax::kJson ? "{\"a\": 1}" : "", syntax, lines_for(syntax));
    text.insert(text.find(syntax == Syntax::kJson ? "efimd.path" : "one line"),
                syntax == Syntax::kJson ? "my-" : "x\n");
    const auto found = find_block(text, syntax);
    CHECK_FALSE(found);
  }
  CHECK_FALSE(find_block("-- >>> efimd setup, sum 12345678\n", Syntax::kLua));
}

TEST_CASE("a comma that VS Code adds behind the member does not make it the user's") {
  std::string text = *with_block("{\n}\n", Syntax::kJson, "\"efimd.path\": \"x\"");
  text.replace(text.find("\"x\"") + 3, 0, ",");
  const auto found = find_block(text, Syntax::kJson);
  REQUIRE(found);
  CHECK((*found)->rest == "{\n}\n");
}

TEST_CASE("what is no object of JSON is refused with its line") {
  for (const char* bad :
       {"", "[]", "{", "{\"a\"}", "{\"a\": }", "{\"a\": 1 \"b\": 2}", "{\"a\": \"x\n\"}", "{} {}",
        "{/*", "\n\n{\"a\": \"\\", "{\"a\": [1, 2}", "{a: 1}"}) {
    CAPTURE(bad);
    const auto root = read_json_root(bad);
    REQUIRE_FALSE(root);
    CHECK(root.error().message().find("line ") == 0);
  }
  std::string deep = "{\"a\": ";
  for (int i = 0; i < 100'000; ++i) deep += '[';
  CHECK_FALSE(read_json_root(deep));
}

TEST_CASE("a Lisp text is whole only outside of lists and strings") {
  for (const char* whole : {"", "(a)", "?\\( ?\\)", "\"(\"", "; (\n()", "(list ?\\\" ?a ?\\\\)",
                            "(what? 'a)", "[?( ]"}) {
    CAPTURE(whole);
    CHECK(lisp_is_whole(whole));
  }
  for (const char* open : {"(", ")", "\"", "(\")\"", "(; )", "\"\\\"", "[)"}) {
    if (std::string_view(open) == "[)") continue;  // kinds are not told apart
    CAPTURE(open);
    CHECK_FALSE(lisp_is_whole(open));
  }
}

TEST_CASE(
    "a step writes through a link, keeps the mode, and its removal leaves the file as it was") {
  const TempDir dir;
  const fs::path real = dir.path() / "dotfiles/emacs", link = dir.path() / "home/.emacs";
  write(real, "(setq a 1)");
  fs::permissions(real, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_directories(link.parent_path());
  fs::create_symlink(real, link);
  const BlockWish wish{"Emacs", link, Syntax::kLisp, "(setq b 2)\n"};
  Step step = block_step(wish, Direction::kAdd);
  REQUIRE(step.state == Step::State::kOffer);
  REQUIRE(step.apply());
  CHECK(fs::is_symlink(link));
  CHECK(read(real).find("(setq b 2)\n") != std::string::npos);
  CHECK((fs::status(real).permissions() & fs::perms::mask) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(block_step(wish, Direction::kAdd).state == Step::State::kDone);
  step = block_step(wish, Direction::kRemove);
  REQUIRE(step.apply());
  CHECK(read(real) == "(setq a 1)");
  CHECK(block_step(wish, Direction::kRemove).state == Step::State::kDone);
}

TEST_CASE(
    "a new file is removed with the folders that were made for it, unless the user wrote into it") {
  const TempDir dir;
  fs::create_directories(dir.path() / "config");
  const fs::path file = dir.path() / "config/nvim/plugin/efimd.lua";
  const BlockWish wish{"Neovim", file, Syntax::kLua, "x = 1\n"};
  REQUIRE(block_step(wish, Direction::kAdd).apply());
  REQUIRE(block_step(wish, Direction::kRemove).apply());
  CHECK(fs::is_empty(dir.path() / "config"));
  REQUIRE(block_step(wish, Direction::kAdd).apply());
  write(file, read(file) + "y = 2\n");
  REQUIRE(block_step(wish, Direction::kRemove).apply());
  CHECK(read(file) == "y = 2\n");
}

TEST_CASE("a file that a program should not write is shown with the lines, and not touched") {
  const TempDir dir;
  const fs::path file = dir.path() / "settings.json";
  const BlockWish wish{"Zed", file, Syntax::kJson, "\"edit_predictions\": {}", "edit_prediction"};
  const auto is_refused = [&](const std::string& text) {
    write(file, text);
    const Step step = block_step(wish, Direction::kAdd);
    CHECK(step.state == Step::State::kByHand);
    CHECK(step.lines == wish.lines);
    CHECK(read(file) == text);
  };
  is_refused("{ broken");
  is_refused("");
  is_refused(std::string("{}\0", 3));
  is_refused("{ // \xff\n}");
  fs::create_hard_link(file, dir.path() / "other");
  write(file, "{}");
  CHECK(block_step(wish, Direction::kAdd).state == Step::State::kByHand);
  fs::remove(dir.path() / "other");
  CHECK(block_step(wish, Direction::kAdd).state == Step::State::kOffer);
  write(file, "{\"edit_predictions\": {\"provider\": \"zed\"}}");
  CHECK(block_step(wish, Direction::kAdd).state == Step::State::kDone);
}

TEST_CASE("VS Code gets a later build of the extension that has the same version") {
  const TempDir home;
  const fs::path code = home / "code", package = home / "efimd.vsix";
  write(code, "#!/bin/sh\n[ \"$1\" != --list-extensions ] || echo efimd.efimd@" +
                  std::string(version()) + "\n");
  fs::permissions(code, fs::perms::owner_all);
  const OnPath on_path(home.path());
  const SetupPlaces places{home.path(), home / "config", home / "data", home / "efimd",
                           {},          package};
  const auto step = [&](Direction direction) { return vscode_steps(places, direction).front(); };
  write(package, "one");
  REQUIRE(step(Direction::kAdd).state == Step::State::kOffer);
  REQUIRE(step(Direction::kAdd).apply());
  CHECK(step(Direction::kAdd).state == Step::State::kDone);
  write(package, "another");
  CHECK(step(Direction::kAdd).state == Step::State::kOffer);
  REQUIRE(step(Direction::kRemove).apply());
  CHECK_FALSE(fs::exists(home / "data/efimd/setup"));
}

TEST_CASE("a file that was changed after the question is not written") {
  const TempDir dir;
  const fs::path file = dir.path() / "init.el";
  write(file, "(a)\n");
  const Step step = block_step({"Emacs", file, Syntax::kLisp, "(b)\n"}, Direction::kAdd);
  write(file, "(a)\n(c)\n");
  CHECK_FALSE(step.apply());
  CHECK(read(file) == "(a)\n(c)\n");
}
