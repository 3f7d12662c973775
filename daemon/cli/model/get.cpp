#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/config/this_system.h"

// efimd has no code that connects anywhere, so a program of its own does it.

namespace efimd::service {

int run_model_get(const CommandLine& line) {
  const auto own = own_executable();
  if (!own) return failed(own.error());
  const std::string program = (own->parent_path() / "efimd-get").string();
  const CommandLine::ModelGet& wish = line.model_get;
  std::vector<std::string> words = {program};
  if (wish.use) words.emplace_back("--use");
  if (wish.dry_run) words.emplace_back("--dry-run");
  if (wish.yes) words.emplace_back("--yes");
  if (wish.no_speed) words.emplace_back("--no-speed");
  if (line.json) words.emplace_back("--json");
  words.emplace_back("--");  // a name is never an option
  words.push_back(wish.name);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  return failed({Fault::kNotFound, program + ": " + std::strerror(errno),
                 "it is installed beside efimd; install efimd again"});
}

}  // namespace efimd::service
