#pragma once

#include "daemon/config/config.h"
#include "daemon/config/local_socket.h"
#include "daemon/config/paths.h"

namespace efimd::service {

struct ServeOptions {
  enum class LogTo { kStderr, kFile };  ///< kFile: Paths::log_file(), rotating, 0600
  LogTo log_to = LogTo::kStderr;
  UniqueFd ready;  ///< report_ready() is told once the socket listens, or why it does not
};

/// Runs the user's daemon until it is stopped or idle; the whole of `efimd serve`.
///
/// Thread: the caller's becomes the io thread; sets the process's umask to 077, and forbids core
/// dumps and debuggers.
/// Returns the exit code: 0 finished, 1 with the reason on stderr (another daemon is running, the
/// socket's folder is not private, ...). A model that cannot be loaded is no reason to exit: status
/// and receipts say so.
int run_daemon(const Paths& paths, const Config& config, ServeOptions options);

}  // namespace efimd::service
