#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "daemon/cli/options.h"
#include "tests/bench/completion/healing.h"
#include "tests/bench/completion/places.h"

namespace efimd::bench {

/// What a command line asks for. An option that a command does not have keeps its default.
struct CommandLine {
  enum class Command {
    kReplay,
    kRounds,
    kType,
    kPlaces,
    kHeads,
    kOpening,
    kFill,
    kStore,
    kReturns,
    kParsing,
    kHealing,
    kMemory,
    kOperations,
    kSteps,
    kForms,
    kSpeed,
    kWarming,
    kTokenizer,
    kWrite
  };
  Command command = Command::kReplay;
  bool json = false;
  std::vector<std::filesystem::path> files;  ///< the traces, cursors, sources or models
  std::string format;                        ///< "efim" or "fim"; empty: not asked for
  std::string reuse;                         ///< "all", "prefix" or "none"; empty: not asked for
  int tokens_max = 8;
  int pause_ms = 0;
  int key_pause_ms = 30;  ///< of `opening`, from an answer to the next key
  int users = 16;
  int rounds = 5;
  int prompt_tokens = 2355;  ///< the paper's
  bool new_files = false;    ///< typed from their beginning
  int lines = 10;            ///< typed in each file
  double speed = 1;
  std::uint32_t seed = 1;
  std::vector<std::string> forms = {"efim"};  ///< of `fill`: "psm", "efim", "healed"
  std::string stop = "line";                  ///< of `fill`
  int store_prompt_tokens = 3000;
  int keys = 100;  ///< typed with a store and without
  std::vector<int> room_tokens = {32768, 65536, 131072, 262144, 524288};  ///< of `returns`
  int window_tokens = 8192;                                               ///< of a file, likewise
  int looks = 0;  ///< files that are looked into once, likewise
  PlacesSetup places;
  HealingSetup healing;                             ///< without its sources, which are in `files`
  std::vector<std::string> types;                   ///< of weights, of `operations`
  std::string type;                                 ///< of weights, of `write`
  int behind = 512;                                 ///< tokens of context before a measured step
  bool mapped = false;                              ///< weights stay in the file's order
  std::vector<std::filesystem::path> vocabularies;  ///< of `tokenizer`
};

/// For the man page and the shells' completions.
std::vector<service::CommandHelp> command_help();

/// `arguments` without the program's name.
tl::expected<CommandLine, service::NothingToRun> parse_command_line(
    std::vector<std::string> arguments);

}  // namespace efimd::bench
