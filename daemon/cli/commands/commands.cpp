#include "daemon/cli/commands/commands.h"

#include <fmt/format.h>

#include <cstdio>

#include "daemon/config/local_socket.h"
#include "daemon/config/printable.h"

namespace efimd::service {

Error none_listens(const Paths& paths) {
  if (!LockFile::is_held(paths.daemon_lock()))
    return {Fault::kNotFound, "no daemon is running", "an editor starts it, or 'efimd serve' does"};
  return {Fault::kNotReady,
          fmt::format("process {} holds the daemon's lock, but does not listen",
                      LockFile::last_holder(paths.daemon_lock()).value_or(0)),
          "'efimd stop' ends it; its log is " + paths.log_file().string()};
}

int failed(const Error& error) {
  std::fflush(stdout);  // what was printed comes first, also where both streams are one file
  std::fprintf(stderr, "efimd: %s\n", printable(error.message()).c_str());
  return 1;
}

}  // namespace efimd::service
