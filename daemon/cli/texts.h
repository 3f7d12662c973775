#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/cli/options.h"

namespace efimd::service {

// The texts that are installed beside a program, made from its --help.

struct ProgramHelp {
  std::string name;                ///< "efimd"
  std::string what;                ///< in a few words, as a man page's first line has them
  std::vector<CommandHelp> helps;  ///< of command_help()
  std::string files = {};  ///< the man page's section FILES in man(7)'s macros, if there is one
};
/// efimd itself.
ProgramHelp efimd_help();

/// PROGRAM(1), in man(7)'s macros.
std::string man_page(const ProgramHelp& program);
/// Commands, subcommands and options, and file names for arguments that want one.
std::string bash_completion(const ProgramHelp& program);
std::string zsh_completion(const ProgramHelp& program);
std::string fish_completion(const ProgramHelp& program);
/// The text that `kind` names: man, bash, zsh or fish. Empty for another.
std::string help_text(const ProgramHelp& program, std::string_view kind);

}  // namespace efimd::service
