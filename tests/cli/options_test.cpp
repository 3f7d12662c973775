#include "daemon/cli/options.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace efimd::service;
using Command = CommandLine::Command;

TEST_CASE("a place is cut at its last two colons") {
  const auto place = parse_place("C:/a:b.c:12:5");
  REQUIRE(place);
  CHECK(place->file == "C:/a:b.c");
  CHECK(place->line == 12);
  CHECK(place->column == 5);
}

TEST_CASE("what is no place is refused with an example") {
  for (const char* bad : {"", "a.c", "a.c:1", "a.c:0:1", "a.c:1:0", "a.c:1:x", "a.c:-1:1", ":1:2",
                          "a.c:1:99999999999999999999999", "a.c:1:2 ", "a.c::2"}) {
    CAPTURE(bad);
    const auto place = parse_place(bad);
    REQUIRE_FALSE(place);
    CHECK(place.error().message().find("main.c:12:5") != std::string::npos);
  }
}

TEST_CASE("every command is found by its name") {
  const std::vector<std::pair<std::vector<std::string>, Command>> lines = {
      {{"lsp"}, Command::kLsp},
      {{"serve"}, Command::kServe},
      {{"status", "--json"}, Command::kStatus},
      {{"complete", "a.c:1:1"}, Command::kComplete},
      {{"model", "list"}, Command::kModelList},
      {{"model", "info", "m.gguf"}, Command::kModelInfo},
      {{"model", "use", "m.gguf"}, Command::kModelUse},
      {{"model", "use", "--configured"}, Command::kModelUse},
      {{"doctor"}, Command::kDoctor},
      {{"autostart", "enable"}, Command::kAutostart},
      {{"setup", "--yes"}, Command::kSetup},
      {{"stop"}, Command::kStop}};
  for (const auto& [arguments, command] : lines) {
    CAPTURE(arguments);
    const auto line = parse_command_line(arguments);
    REQUIRE(line);
    CHECK(line->command == command);
  }
}

TEST_CASE("the options of complete arrive") {
  const auto line = parse_command_line({"complete", "a.c:3:4", "--max-tokens", "7", "--stop",
                                        "line", "--temperature", "0.5", "--json", "--receipt"});
  REQUIRE(line);
  CHECK(line->complete.place.line == 3);
  CHECK(line->complete.tokens_max == 7);
  CHECK(line->complete.stop == "line");
  CHECK(line->complete.temperature == 0.5);
  CHECK(line->complete.receipt);
  CHECK(line->json);
}

TEST_CASE("wrong usage is code 2 with a message") {
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"frobnicate"},
      {"lsp", "--no-such-option"},
      {"status", "extra"},
      {"complete"},
      {"complete", "a.c"},
      {"complete", "a.c:1:1", "--stop", "word"},
      {"complete", "a.c:1:1", "--max-tokens", "0"},
      {"complete", "a.c:1:1", "--temperature", "-1"},
      {"complete", "a.c:1:1", "--temperature", "nan"},
      {"cache", "pin", ""},
      {"cache", "unpin", ""},
      {"cache", "purge", ""},
      {"model"},
      {"bench"},
      {"bench", "replay"},
      {"serve", "--ready-fd", "1"}};
  for (const auto& arguments : lines) {
    CAPTURE(arguments);
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 2);
    CHECK_FALSE(line.error().text.empty());
  }
}

TEST_CASE("an option that is none is named where a command is missing, too") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--bogus"}, {"--bogus", "status"}, {"cache", "--bogus"}}) {
    CAPTURE(arguments);
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 2);
    CHECK(line.error().text.find("\"--bogus\"") != std::string::npos);
  }
}

TEST_CASE("a command that is none is named, also where help is asked for") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"nonsense"},
                                             {"nonsense", "--help"},
                                             {"help", "nonsense"},
                                             {"model", "nonsense"},
                                             {"help", "model", "nonsense"}}) {
    CAPTURE(arguments);
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 2);
    CHECK(line.error().text.find("\"nonsense\"") != std::string::npos);
  }
}

TEST_CASE("who asks efimd for measurements is told the program that makes them") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"bench"}, {"bench", "type", "a.c"}, {"help", "bench"}}) {
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 2);
    CHECK(line.error().text.find("efimd-bench") != std::string::npos);
  }
}

TEST_CASE("every command has help with an example") {
  const std::vector<std::vector<std::string>> commands = {
      {},        {"lsp"},           {"serve"},         {"status"}, {"complete"},
      {"model"}, {"model", "list"}, {"model", "info"}, {"doctor"}, {"stop"}};
  for (auto arguments : commands) {
    CAPTURE(arguments);
    arguments.push_back("--help");
    const auto line = parse_command_line(arguments);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == 0);
    CHECK(line.error().text.find("Example:\n  ") != std::string::npos);
  }
}

TEST_CASE("the version is printed with code 0") {
  const auto line = parse_command_line({"--version"});
  REQUIRE_FALSE(line);
  CHECK(line.error().code == 0);
  CHECK(line.error().text.starts_with("efimd "));
}

TEST_CASE("autostart says which, and status whether it is watched") {
  CHECK(parse_command_line({"autostart", "disable"})->autostart ==
        CommandLine::Autostart::kDisable);
  CHECK(parse_command_line({"autostart", "status"})->autostart == CommandLine::Autostart::kStatus);
  CHECK_FALSE(parse_command_line({"autostart"}));
  CHECK(parse_command_line({"status", "--watch"})->watch);
  CHECK_FALSE(parse_command_line({"status"})->watch);
}

TEST_CASE("command_help tells of every command and of its options, as --help does") {
  const auto helps = command_help();
  CHECK(helps.front().name.empty());
  for (const CommandHelp& help : helps) {
    CAPTURE(help.name);
    CHECK_FALSE(help.what.empty());
    for (const auto& option : help.options) CHECK_FALSE(option.what.empty());
  }
  const auto complete = std::find_if(helps.begin(), helps.end(),
                                     [](const auto& help) { return help.name == "complete"; });
  REQUIRE(complete != helps.end());
  const auto stop = std::find_if(complete->options.begin(), complete->options.end(),
                                 [](const auto& option) { return option.names == "--stop"; });
  REQUIRE(stop != complete->options.end());
  CHECK(stop->value.find("line") != std::string::npos);
  CHECK(complete->options.back().names == "--json");
  CHECK(std::any_of(helps.begin(), helps.end(),
                    [](const auto& help) { return help.name == "model info"; }));
}
