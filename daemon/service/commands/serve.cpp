#include "daemon/service/serve.h"

#include <fcntl.h>

#include "daemon/service/chosen_model.h"
#include "daemon/service/commands/commands.h"

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
  return run_daemon(paths, config, std::move(serve));
}

}  // namespace efimd::service
