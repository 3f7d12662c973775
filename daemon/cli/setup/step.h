#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/cli/setup/marked_block.h"

namespace efimd::service {

// `efimd setup` is a list of steps. Looking for them changes nothing; each says what it would do
// before it is done, and a step that is done already says so.

/// Where the files of this user and of efimd are.
struct SetupPlaces {
  std::filesystem::path home;
  std::filesystem::path config;          ///< $XDG_CONFIG_HOME
  std::filesystem::path data;            ///< $XDG_DATA_HOME
  std::filesystem::path program;         ///< efimd
  std::filesystem::path neovim_plugin;   ///< a folder; empty: not installed
  std::filesystem::path vscode_package;  ///< a .vsix; empty: not installed
};

/// From the process's environment and the folder of its executable.
Result<SetupPlaces> find_setup_places();

struct Step {
  enum class State {
    kDone,    ///< nothing is to be done, or nothing can be; `what` says why
    kOffer,   ///< apply() does it
    kByHand,  ///< the user must do it; `what` says what
  };
  State state = State::kDone;
  std::string subject;  ///< "Neovim"
  std::string what;     ///< for kOffer without its subject: "write /home/…"
  std::string lines;    ///< what would be written, or what is to be written by hand
  std::string after;    ///< what the user has to know when it is done
  std::function<Result<void>()> apply;
};
using Steps = std::vector<Step>;

enum class Direction { kAdd, kRemove };

/// efimd's lines in a file of the user's.
struct BlockWish {
  std::string subject;
  std::filesystem::path file;
  Syntax syntax = Syntax::kLua;
  std::string lines;
  /// The file is the user's own work if this is in it outside of a block: it is left alone then.
  std::string own_word = "efimd";
  std::string after = {};
};
Step block_step(const BlockWish& wish, Direction direction);

/// The step of an editor that is not on this machine, or not ready: nothing to do.
Step done_step(std::string subject, std::string what);
Step by_hand_step(std::string subject, std::string what, std::string lines);

/// A text in quotes, as JSON, Lua, Lisp and Vim read it.
std::string in_quotes(std::string_view text);

// The editors, none if they are not here.
Steps vscode_steps(const SetupPlaces& places, Direction direction);
Steps neovim_steps(const SetupPlaces& places, Direction direction);
Steps emacs_steps(const SetupPlaces& places, Direction direction);
/// Zed and Vim, which want efimd-http, and its switch in config.toml.
Steps http_client_steps(const SetupPlaces& places, const std::filesystem::path& config_file,
                        Direction direction);

}  // namespace efimd::service
