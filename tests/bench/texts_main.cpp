// Prints what is installed beside efimd-bench; run by the build, installed nowhere.
//   efimd_bench_texts man | bash | zsh | fish
#include <cstdio>
#include <string>

#include "daemon/cli/texts.h"
#include "tests/bench/options.h"

int main(int argc, char** argv) {
  using namespace efimd;
  const service::ProgramHelp program{
      "efimd-bench", "what completions and the engine cost on this machine", bench::command_help()};
  const std::string text = service::help_text(program, argc > 1 ? argv[1] : "");
  std::fputs(text.c_str(), stdout);
  return text.empty() ? 2 : 0;
}
