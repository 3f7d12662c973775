#include "daemon/config/program.h"

#include <sys/resource.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <csignal>
#include <cstdio>
#include <exception>

namespace efimd::service {

void keep_memory_private() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // PR_SET_DUMPABLE does more, but Linux alone has it
#if defined(__linux__) && !defined(EFIMD_SANITIZED)
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

int run_program(const char* name, int (*run)(int argc, char** argv), int argc, char** argv) {
  ::umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  keep_memory_private();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace efimd::service
