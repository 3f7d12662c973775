#pragma once

#include "daemon/config/config.h"
#include "daemon/config/local_socket.h"
#include "daemon/config/paths.h"

namespace efimd::service {

struct ServeOptions {
  enum class LogTo { kStderr, kFile };  ///< kFile: Paths::log_file(), rotating, 0600
  LogTo log_to = LogTo::kStderr;
  UniqueFd ready;  ///< for report_ready(), when the socket listens, or why it does not
};

/// Runs the user's daemon until it is stopped or idle; all of `efimd serve`.
///
/// Thread: the caller's becomes the io thread. Sets the process's umask to 077, and forbids core
/// dumps and debuggers. Returns the exit code: 0 finished, 1 with the reason on stderr, such as
/// another daemon or a socket's folder that is not private. If a model cannot be loaded, it does
/// not exit: status and receipts say so.
int run_daemon(const Paths& paths, const Config& config, ServeOptions options);

}  // namespace efimd::service
