#include "daemon/config/paths.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>

#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;

namespace {

Surroundings surroundings(std::map<std::string, std::string> variables) {
  Surroundings from;
  from.variable = [variables =
                       std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  from.user = ::geteuid();
  from.run_user_root = "/nowhere";
  from.temp_directory = "/temp";
  from.home = "/home/someone";
  return from;
}

}  // namespace

TEST_CASE("EFIMD_* paths win over everything") {
  const auto paths = find_paths(surroundings({{"EFIMD_RUNTIME_DIR", "/r"},
                                              {"EFIMD_CONFIG", "/c.toml"},
                                              {"EFIMD_CACHE_DIR", "/k"},
                                              {"EFIMD_STATE_DIR", "/s"},
                                              {"XDG_RUNTIME_DIR", "/x"},
                                              {"XDG_CONFIG_HOME", "/x"}}));
  REQUIRE(paths);
  CHECK(paths->socket() == "/r/daemon.sock");
  CHECK(paths->config_file == "/c.toml");
  CHECK(paths->cache_dir == "/k");
  CHECK(paths->log_file() == "/s/efimd.log");
  CHECK(paths->notes.empty());
}

TEST_CASE("XDG folders come next, and relative ones are ignored") {
  const auto paths = find_paths(surroundings({{"XDG_RUNTIME_DIR", "/run/me"},
                                              {"XDG_CONFIG_HOME", "relative"},
                                              {"XDG_CACHE_HOME", "/k"},
                                              {"HOME", "/h"}}));
  REQUIRE(paths);
  CHECK(paths->runtime_dir == "/run/me/efimd");
  CHECK(paths->config_file == "/h/.config/efimd/config.toml");
  CHECK(paths->cache_dir == "/k/efimd");
  CHECK(paths->state_dir == "/h/.local/state/efimd");
}

TEST_CASE("without XDG_RUNTIME_DIR the user's folder under /run/user is used, with a note") {
  const test::TempDir run_user;
  Surroundings from = surroundings({});
  from.run_user_root = run_user.path();
  const auto mine = run_user / std::to_string(::geteuid());
  std::filesystem::create_directory(mine);
  const auto paths = find_paths(from);
  REQUIRE(paths);
  CHECK(paths->runtime_dir == mine / "efimd");
  REQUIRE(paths->notes.size() == 1);
  CHECK(paths->notes[0].find("XDG_RUNTIME_DIR") != std::string::npos);
}

TEST_CASE("without any runtime folder a private one under the temporary directory is named") {
  const auto paths = find_paths(surroundings({}));
  REQUIRE(paths);
  CHECK(paths->runtime_dir == "/temp/efimd-" + std::to_string(::geteuid()));
  CHECK(paths->notes.size() == 1);
}

TEST_CASE("a folder too long for a socket's path is refused with what to set") {
  const auto paths = find_paths(surroundings({{"EFIMD_RUNTIME_DIR", "/" + std::string(120, 'a')}}));
  REQUIRE_FALSE(paths);
  CHECK(paths.error().message().find("EFIMD_RUNTIME_DIR") != std::string::npos);
}

TEST_CASE("a relative HOME is none, so that each folder in which efimd runs has the same files") {
  const auto paths = find_paths(surroundings({{"XDG_RUNTIME_DIR", "/r"}, {"HOME", "somewhere"}}));
  REQUIRE(paths);
  CHECK(paths->config_file == "/home/someone/.config/efimd/config.toml");
  CHECK(paths->cache_dir == "/home/someone/.cache/efimd");
  CHECK(paths->state_dir == "/home/someone/.local/state/efimd");
}

TEST_CASE("the note on a relative XDG_RUNTIME_DIR does not say that it is not set") {
  const auto paths = find_paths(surroundings({{"XDG_RUNTIME_DIR", "run"}}));
  REQUIRE(paths);
  REQUIRE(paths->notes.size() == 1);
  CHECK(paths->notes[0].starts_with("$XDG_RUNTIME_DIR is no absolute path: "));
}

TEST_CASE("a user without a home directory is told which variables to set") {
  Surroundings from = surroundings({{"XDG_RUNTIME_DIR", "/run/me"}});
  from.home.clear();
  const auto paths = find_paths(from);
  REQUIRE_FALSE(paths);
  CHECK(paths.error().message().find("$HOME") != std::string::npos);
}
