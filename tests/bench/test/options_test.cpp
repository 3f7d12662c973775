#include "tests/bench/options.h"

#include <catch2/catch.hpp>

using namespace efimd::bench;
using Command = CommandLine::Command;

TEST_CASE("every measurement is found by its name") {
  const std::vector<std::pair<std::vector<std::string>, Command>> lines = {
      {{"replay", "t.jsonl", "--format", "fim", "--reuse", "none"}, Command::kReplay},
      {{"rounds", "a.c", "b.c", "--users", "2"}, Command::kRounds},
      {{"type", "a.c", "--speed", "2.5"}, Command::kType},
      {{"fill", "c.jsonl", "--form", "psm,efim"}, Command::kFill},
      {{"store", "a.c", "--keys", "5"}, Command::kStore}};
  for (const auto& [arguments, command] : lines) {
    CAPTURE(arguments);
    const auto line = parse_command_line(arguments);
    REQUIRE(line);
    CHECK(line->command == command);
    CHECK(line->files.size() == (command == Command::kRounds ? 2 : 1));
  }
}

TEST_CASE("wrong usage of a measurement is code 2 with a message") {
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"frobnicate"},
      {"replay"},
      {"replay", "a", "b"},
      {"replay", "t.jsonl", "--format", "psm"},
      {"replay", "t.jsonl", "--format", "fim", "--reuse", "all"},
      {"rounds"},
      {"rounds", "a.c", "--users", "0"},
      {"type", "a.c", "--speed", "0"},
      {"fill", "c.jsonl", "--form", "spm"},
      {"store", "a.c", "b.c"}};
  for (const auto& arguments : lines) {
    CAPTURE(arguments);
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 2);
    CHECK_FALSE(line.error().text.empty());
  }
}

TEST_CASE("every measurement has help with an example") {
  for (std::vector<std::string> arguments : std::vector<std::vector<std::string>>{
           {}, {"replay"}, {"rounds"}, {"type"}, {"fill"}, {"store"}}) {
    CAPTURE(arguments);
    arguments.push_back("--help");
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 0);
    CHECK(line.error().text.find("Example:\n  efimd-bench ") != std::string::npos);
  }
}

TEST_CASE("the program says which version it is") {
  const auto line = parse_command_line({"--version"});
  REQUIRE_FALSE(line);
  CHECK(line.error().code == 0);
  CHECK(line.error().text.starts_with("efimd-bench "));
}
