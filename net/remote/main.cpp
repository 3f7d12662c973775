// efimd-remote: asks a server elsewhere for completions, for the user's daemon, which has no code
// that connects anywhere. `efimd serve` starts it if [engine] url is set.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "daemon/config/config.h"
#include "daemon/config/paths.h"
#include "daemon/config/version.h"
#include "net/remote/key.h"
#include "net/remote/server.h"

namespace efimd::remote {

namespace {

int failed(const Error& error, service::UniqueFd ready = {}) {
  std::fprintf(stderr, "efimd-remote: %s\n", error.message().c_str());
  service::report_ready(std::move(ready), tl::unexpected(error));
  return 1;
}

/// Text and the key pass through this process: they must not come to the disk as a core.
void keep_memory_private() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
#if defined(__linux__) && !defined(EFIMD_SANITIZED)
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

int serve(const service::Paths& paths, service::UniqueFd ready) {
  const service::Config config = service::load_config(paths.config_file);
  if (config.remote.url.empty())
    return failed({Fault::kNotFound, "no engine elsewhere is configured", "set engine.url"},
                  std::move(ready));
  auto key = find_key(config.remote.key_file, std::getenv("EFIMD_ENGINE_KEY"));
  if (!key) return failed(key.error(), std::move(ready));
  if (auto folder = service::ensure_private_directory(paths.runtime_dir); !folder)
    return failed(folder.error(), std::move(ready));
  const auto lock = service::LockFile::try_lock(paths.remote_lock());
  if (!lock) return failed(lock.error(), std::move(ready));
  if (!*lock) return failed({Fault::kNotReady, "efimd-remote runs already", ""}, std::move(ready));
  auto listener = service::listen_at(paths.remote_socket());
  if (!listener) return failed(listener.error(), std::move(ready));
  Server::Settings settings;
  settings.url = config.remote.url;
  settings.model = config.remote.model;
  settings.key = std::move(*key);
  settings.daemon_lock = paths.daemon_lock();
  Server server(std::move(settings), std::move(*listener));
  service::report_ready(std::move(ready), {});
  server.run();
  ::unlink(paths.remote_socket().c_str());
  return 0;
}

int run(int argc, char** argv) {
  keep_memory_private();
  CLI::App app{"Asks the server that engine.url names for completions, for the user's daemon.",
               "efimd-remote"};
  int ready_fd = -1;
  app.set_version_flag("--version", std::string("efimd-remote ") + service::version());
  app.add_option("--ready-fd", ready_fd,
                 "Descriptor that is told once it listens (for who starts it)")
      ->check(CLI::Range(3, 1 << 20));
  app.footer("The daemon starts it; docs/remote.md says what leaves the machine.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto paths = service::find_paths();
  if (!paths) return failed(paths.error());
  return serve(*paths, service::UniqueFd(ready_fd));
}

}  // namespace

}  // namespace efimd::remote

int main(int argc, char** argv) {
  ::umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return efimd::remote::run(argc, argv);
  } catch (const std::exception& error) {
    return efimd::remote::failed({efimd::Fault::kIo, error.what(), ""});
  }
}
