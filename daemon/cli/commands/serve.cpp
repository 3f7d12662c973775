#include "daemon/server/serve.h"

#include <fcntl.h>

#include <cstdlib>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/http.h"
#include "daemon/models/chosen_model.h"

namespace efimd::service {

int run_serve(const Paths& paths, const CommandLine::Serve& options) {
  ServeOptions serve;
  if (options.background) serve.log_to = ServeOptions::LogTo::kFile;
  if (options.ready_fd >= 0) {
    if (::fcntl(options.ready_fd, F_SETFD, FD_CLOEXEC) != 0)
      return failed({Fault::kBadInput, "--ready-fd: no such descriptor is open", "leave it out"});
    serve.ready = UniqueFd(options.ready_fd);
  }
  const Config config = config_in_force(paths);
  start_http_if_wanted(paths, config, std::getenv("LISTEN_PID") != nullptr);
  return run_daemon(paths, config, std::move(serve));
}

}  // namespace efimd::service
