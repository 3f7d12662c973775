#include "daemon/config/program.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "daemon/config/paths.h"

namespace efimd::service {

void keep_memory_private() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // PR_SET_DUMPABLE does more, but Linux alone has it
#if defined(__linux__) && !defined(EFIMD_SANITIZED)
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

void settle_home() {
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return;
  if (const auto known = Surroundings::of_this_process().home; known.is_absolute())
    ::setenv("HOME", known.c_str(), 1);
}

bool output_was_lost() {
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return false;
  // Not by errno: the write that failed may have been an earlier one.
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) < 0 || (out.revents & POLLERR) == 0;
}

int run_program(const char* name, int (*run)(int argc, char** argv), int argc, char** argv) {
  ::umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  keep_memory_private();
  settle_home();
  try {
    const int code = run(argc, argv);
    if (!output_was_lost()) return code;
    std::fprintf(stderr, "%s: %s; %s\n", name, kOutputLost, kRemedyForOutputLost);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
  }
  return 1;
}

}  // namespace efimd::service
