#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "daemon/cli/options.h"
#include "daemon/config/paths.h"

namespace efimd::service {

// The commands of the CLI. Each prints its answer on stdout and returns the process's exit code: 0,
// or 1 with a reason on stderr.

int run_lsp(const Paths& paths);
int run_serve(const Paths& paths, const CommandLine::Serve& options);
/// Never starts a daemon.
int run_status(const Paths& paths, const CommandLine& line);
/// The status every second, until q, SIGINT, SIGTERM or the end of stdout; waits for a daemon.
int run_status_watch(const Paths& paths, const CommandLine& line);
/// 1 also if there is no suggestion; the reason is on stderr.
int run_complete(const Paths& paths, const CommandLine& line);
int run_model_list(const Paths& paths, const CommandLine& line);
int run_model_info(const Paths& paths, const CommandLine& line);
/// Asks the daemon, or reads the store itself if none runs.
int run_cache(const Paths& paths, const CommandLine& line);
/// Opens the model first, so that one that cannot run changes nothing.
int run_model_use(const Paths& paths, const CommandLine& line);
/// Becomes the program efimd-get beside this one, which alone may connect; returns only if that is
/// not there.
int run_model_get(const CommandLine& line);
/// Measures this machine for some seconds.
int run_model_recommend(const Paths& paths, const CommandLine& line);
/// 1 if something is wrong.
int run_doctor(const Paths& paths, const CommandLine& line);
/// 0 also if there is no service manager, because the bridge starts the daemon then.
int run_autostart(const Paths& paths, CommandLine::Autostart what);
struct AutostartState {
  bool possible = false;  ///< a service manager of this user runs
  bool enabled = false;   ///< its files for efimd are there
};
AutostartState autostart_state();
/// 0 also if no daemon runs.
int run_stop(const Paths& paths);

/// For an answer about its status and its version; a daemon that takes longer hangs.
inline constexpr std::chrono::seconds kStatusAnswerMax(5);

/// Why nothing listens at the daemon's socket: kNotFound if no daemon runs, kNotReady if one holds its
/// lock. Its socket may have been removed, or it is about to end.
Error none_listens(const Paths& paths);

/// Asks the daemon to finish and waits for its end; by a signal if it does not answer.
enum class Stopped { kFinished, kNoneRan };
Result<Stopped> stop_daemon(const Paths& paths);

/// "efimd: message" on stderr; 1.
int failed(const Error& error);

}  // namespace efimd::service
