#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/error.h"
#include "daemon/server/cache_request.h"

namespace CLI {
class App;
}

namespace efimd::service {

/// "FILE:LINE:COLUMN", both from 1, the column in characters. FILE may hold colons.
struct Place {
  std::filesystem::path file;
  std::size_t line = 0;
  std::size_t column = 0;
};
Result<Place> parse_place(std::string_view text);

/// A parsed command line.
struct CommandLine {
  enum class Command {
    kLsp,
    kServe,
    kStatus,
    kComplete,
    kModelList,
    kModelInfo,
    kModelUse,
    kModelGet,
    kModelRecommend,
    kCache,
    kDoctor,
    kAutostart,
    kHttp,
    kSetup,
    kStop
  };
  Command command = Command::kLsp;
  bool json = false;
  bool watch = false;  ///< status: repeatedly
  bool why = false;    ///< status: how the last requests were planned

  enum class Autostart { kEnable, kDisable, kStatus };
  Autostart autostart = Autostart::kStatus;

  struct Serve {
    bool background = false;  ///< started by a bridge: the log goes to its file
    int ready_fd = -1;
  } serve;

  struct Http {
    std::optional<int> port;
    bool print_token = false;
    bool background = false;
    bool stop = false;
  } http;

  struct Setup {
    bool yes = false;
    bool dry_run = false;
    bool remove = false;
    bool no_model = false;
  } setup;

  struct Complete {
    Place place;
    std::optional<int> tokens_max;
    std::optional<std::string> stop;  ///< "none", "line" or "block"
    std::optional<double> temperature;
    bool receipt = false;
  } complete;

  struct Cache {
    CacheRequest request;        ///< its uri is made from `path`
    std::filesystem::path path;  ///< empty: none was named
  } cache;

  std::filesystem::path doctor_file;  ///< empty: the machine
  /// What efimd-get, which is started for it, is told.
  struct ModelGet {
    std::string name;
    bool dry_run = false, yes = false, use = false, no_speed = false;
  } model_get;

  std::filesystem::path model_file;  ///< empty: the one in use; for `model use` also a name
  bool no_speed = false;             ///< `model info --no-speed`
  bool model_configured = false;     ///< `model use --configured`
};

/// Nothing to run: help, the version (code 0, `text` for stdout), or wrong usage (code 2, `text`
/// for stderr).
struct NothingToRun {
  int code = 0;
  std::string text;
};

/// One command, as in --help, for the man page, the shells' completions and docs/.
struct CommandHelp {
  struct Option {
    std::string names;  ///< "--stop", "-h,--help"; a positional's own name
    std::string value;  ///< "TEXT", "FILE:LINE:COLUMN"; empty for a flag
    std::string what;
    bool positional = false;
  };
  std::string name;  ///< "model list"; empty for the program itself
  std::string what;
  std::string footer;
  std::vector<Option> options;
  std::vector<std::string> commands;  ///< names of its subcommands, without its own
};
/// efimd itself first, then each command before those below it.
std::vector<CommandHelp> command_help();
/// The same of another program.
std::vector<CommandHelp> command_help(const CLI::App& program);

/// The first word in a command's place that is neither one nor an option, as wrong usage: CLI11 does
/// not name it, and helps anyway. `words` are the arguments without the program's name.
std::optional<NothingToRun> unknown_word(const CLI::App& program,
                                         const std::vector<std::string>& words);

/// `arguments` without the program's name.
tl::expected<CommandLine, NothingToRun> parse_command_line(std::vector<std::string> arguments);

}  // namespace efimd::service
