// Measures completions and the engine on this machine; efimd-bench --help says what there is.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "daemon/config/program.h"
#include "tests/bench/commands/commands.h"

namespace efimd::bench {

namespace {

int run(const CommandLine& line) {
  const auto paths = service::find_paths();
  if (!paths) return failed(paths.error());
  switch (line.command) {
    using Command = CommandLine::Command;
    case Command::kReplay:
      return run_replay(*paths, line);
    case Command::kRounds:
      return run_rounds(*paths, line);
    case Command::kType:
      return run_type(*paths, line);
    case Command::kPlaces:
      return run_places(*paths, line);
    case Command::kHeads:
      return run_heads(*paths, line);
    case Command::kParsing:
      return run_parsing(line);
    case Command::kOpening:
      return run_opening(*paths, line);
    case Command::kFill:
      return run_fill(*paths, line);
    case Command::kStore:
      return run_store(*paths, line);
    case Command::kReturns:
      return run_returns(line);
    case Command::kHealing:
      return run_healing(line);
    case Command::kMemory:
      return run_memory();
    case Command::kOperations:
      return run_operations(line);
    case Command::kSteps:
      return run_steps(line);
    case Command::kForms:
      return run_forms(line);
    case Command::kSpeed:
      return run_speed(line);
    case Command::kWarming:
      return run_warming(line);
    case Command::kTokenizer:
      return run_tokenizer(line);
    case Command::kWrite:
      return run_write(line);
  }
  return 2;
}

int run_command_line(std::vector<std::string> arguments) {
  const auto line = parse_command_line(std::move(arguments));
  if (line) return run(*line);
  const service::NothingToRun& nothing = line.error();
  std::fputs(nothing.text.c_str(), nothing.code == 0 ? stdout : stderr);
  return nothing.code;
}

}  // namespace

int failed(const Error& error) {
  std::fflush(stdout);  // what was printed comes first, also where both streams are one file
  std::fprintf(stderr, "efimd-bench: %s\n", error.message().c_str());
  return 1;
}

}  // namespace efimd::bench

int main(int argc, char** argv) {
  try {
    const int code = efimd::bench::run_command_line({argv + 1, argv + argc});
    if (!efimd::service::output_was_lost()) return code;
    return efimd::bench::failed(
        {efimd::Fault::kIo, efimd::service::kOutputLost, efimd::service::kRemedyForOutputLost});
  } catch (const std::exception& error) {
    return efimd::bench::failed({efimd::Fault::kIo, error.what(), ""});
  }
}
