#pragma once

#include <string>
#include <vector>

#include "daemon/cli/options.h"

namespace efimd::service {

// Texts that are installed beside the program, made from the same tables as --help.

/// efimd(1), in man(7)'s macros.
std::string man_page(const std::vector<CommandHelp>& helps);
/// Commands, subcommands and options; file names where they are asked for.
std::string bash_completion(const std::vector<CommandHelp>& helps);
std::string zsh_completion(const std::vector<CommandHelp>& helps);
std::string fish_completion(const std::vector<CommandHelp>& helps);

}  // namespace efimd::service
