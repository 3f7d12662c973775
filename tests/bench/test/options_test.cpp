#include "tests/bench/options.h"

#include <catch2/catch.hpp>

using namespace efimd::bench;
using Command = CommandLine::Command;

namespace {

struct Line {
  std::vector<std::string> arguments;
  Command command;
  std::size_t files = 1;
};

}  // namespace

TEST_CASE("every measurement is found by its name") {
  const std::vector<Line> lines = {
      {{"replay", "t.jsonl", "--format", "fim", "--reuse", "none"}, Command::kReplay},
      {{"rounds", "a.c", "b.c", "--users", "2"}, Command::kRounds, 2},
      {{"type", "a.c", "--speed", "2.5"}, Command::kType},
      {{"heads", "a", "b", "--count", "3"}, Command::kHeads, 2},
      {{"opening", "src", "--rounds", "7"}, Command::kOpening},
      {{"fill", "c.jsonl", "--form", "psm,efim"}, Command::kFill},
      {{"store", "a.c", "--keys", "5"}, Command::kStore},
      {{"returns", "a.csv", "b.csv", "--room", "4096,8192"}, Command::kReturns, 2},
      {{"healing", "--random", "m.gguf", "a.c", "b.c"}, Command::kHealing, 2},
      {{"memory"}, Command::kMemory, 0},
      {{"operations", "Q4_K", "Q8_0"}, Command::kOperations, 0},
      {{"steps", "m.gguf"}, Command::kSteps},
      {{"speed", "m.gguf"}, Command::kSpeed},
      {{"tokenizer", "a.c", "--vocabulary", "m.gguf"}, Command::kTokenizer},
      {{"write", "Q4_K", "m.gguf"}, Command::kWrite}};
  for (const Line& expected : lines) {
    CAPTURE(expected.arguments);
    const auto line = parse_command_line(expected.arguments);
    REQUIRE(line);
    CHECK(line->command == expected.command);
    CHECK(line->files.size() == expected.files);
  }
}

TEST_CASE("what is no source file has a place of its own") {
  const auto healing = parse_command_line({"healing", "m.gguf", "a.c", "--cursors", "7"});
  REQUIRE(healing);
  CHECK(healing->healing.model == "m.gguf");
  CHECK(healing->healing.cursors == 7);
  const auto tokenizer =
      parse_command_line({"tokenizer", "a.c", "b.c", "--vocabulary", "m.gguf", "n.gguf"});
  REQUIRE(tokenizer);
  CHECK(tokenizer->files.size() == 2);
  CHECK(tokenizer->vocabularies.size() == 2);
  CHECK(parse_command_line({"write", "Q4_K", "m.gguf"})->type == "Q4_K");
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
      {"store", "a.c", "b.c"},
      {"healing", "m.gguf"},
      {"healing", "m.gguf", "a.c", "--cursors", "0"},
      {"memory", "extra"},
      {"steps"},
      {"speed", "m.gguf", "other.gguf"},
      {"tokenizer", "a.c"},
      {"write", "Q4_K"}};
  for (const auto& arguments : lines) {
    CAPTURE(arguments);
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 2);
    CHECK_FALSE(line.error().text.empty());
  }
}

TEST_CASE("a measurement that is none is named") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"nonsense"}, {"nonsense", "--help"}}) {
    CAPTURE(arguments);
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 2);
    CHECK(line.error().text.find("efimd-bench: there is no command \"nonsense\"") !=
          std::string::npos);
  }
}

TEST_CASE("every measurement has help with an example") {
  for (std::vector<std::string> arguments : std::vector<std::vector<std::string>>{{},
                                                                                  {"replay"},
                                                                                  {"rounds"},
                                                                                  {"type"},
                                                                                  {"fill"},
                                                                                  {"store"},
                                                                                  {"healing"},
                                                                                  {"memory"},
                                                                                  {"operations"},
                                                                                  {"steps"},
                                                                                  {"speed"},
                                                                                  {"tokenizer"},
                                                                                  {"write"}}) {
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
