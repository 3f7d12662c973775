#pragma once

#include <sys/types.h>

#include <functional>

#include "base/error.h"

namespace efimd::net {

/// What the serving process does, until SIGTERM or SIGINT or the end of `starter`. Its value is that
/// process's status; kStarterGone: the process is to become the program anew.
using Serve = std::function<int(pid_t starter)>;

/// No status of a program.
inline constexpr int kStarterGone = -1;

struct ToServe {
  /// Before each start: what to serve.
  std::function<Result<Serve>()> prepare;
  /// At SIGUSR1: whether that has changed, so that another one is to start.
  std::function<bool()> has_changed;
};

struct Ended {
  int status = 0;
  bool starter = true;  ///< false: a serving process has
  bool asked = false;   ///< by SIGTERM or SIGINT
};

/// Serves in a process of its own, and starts another one if something kills that: the daemon's
/// sandbox lets it start nothing. If something kills this one, the serving one takes its place.
///
/// Returns in this process and in the serving ones.  Thread: the only one.
Ended keep_serving(const char* name, const ToServe& what);

/// In a serving process: whether SIGTERM or SIGINT came.
bool asked_to_end();

}  // namespace efimd::net
