// efimd-remote: asks a server elsewhere for completions, for the user's daemon, which has no code
// that connects anywhere. `efimd serve` starts it if [engine] url is set.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "daemon/config/config.h"
#include "daemon/config/paths.h"
#include "daemon/config/program.h"
#include "daemon/config/this_system.h"
#include "daemon/config/version.h"
#include "net/remote/key.h"
#include "net/remote/server.h"

namespace efimd::remote {

namespace {

/// No status of a program: its process is to become the program anew.
constexpr int kStartAgain = -1;

int failed(const Error& error, service::UniqueFd ready = {}) {
  std::fprintf(stderr, "efimd-remote: %s\n", error.message().c_str());
  service::report_ready(std::move(ready), tl::unexpected(error));
  return 1;
}

/// If something kills one that lived no longer than this, the next one waits kPause, so that a cause
/// that lasts costs little.
constexpr auto kShortLife = std::chrono::seconds(10);
constexpr auto kPause = std::chrono::seconds(1);

volatile std::sig_atomic_t asked_to_end = 0;
volatile pid_t serving = 0;  ///< the process that serves; 0: none yet

void ask_to_end(int) {
  asked_to_end = 1;
  if (serving > 0) ::kill(serving, SIGTERM);
}

/// While it lives, a request to end waits.
class EndsLater {
 public:
  EndsLater() {
    sigset_t ends;
    ::sigemptyset(&ends);
    ::sigaddset(&ends, SIGTERM);
    ::sigaddset(&ends, SIGINT);
    ::sigprocmask(SIG_BLOCK, &ends, &before_);
  }
  ~EndsLater() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  EndsLater(const EndsLater&) = delete;
  EndsLater& operator=(const EndsLater&) = delete;

 private:
  sigset_t before_;
};

/// True if it ended by itself, or because it was asked to.
bool wait_for_end() {
  int status = 0;
  while (::waitpid(serving, &status, 0) < 0)
    if (errno != EINTR) return true;
  serving = 0;
  if (!WIFSIGNALED(status) || asked_to_end != 0) return true;
  std::fprintf(stderr, "efimd-remote: signal %d ended it; it starts again\n", WTERMSIG(status));
  return false;
}

/// Serves in a process of its own, and starts another one if something kills that: the daemon's
/// sandbox lets it start nothing. If something kills this one, the serving one takes its place.
int keep_serving(const service::Paths& paths, Server::Settings settings,
                 const service::UniqueFd& listener) {
  std::signal(SIGTERM, ask_to_end);
  std::signal(SIGINT, ask_to_end);
  settings.starter = ::getpid();
  while (asked_to_end == 0) {
    const auto begin = std::chrono::steady_clock::now();
    {
      const EndsLater later;
      serving = ::fork();
      if (serving == 0) {
        std::signal(SIGTERM, SIG_DFL);  // until the server listens for them
        std::signal(SIGINT, SIG_DFL);
      }
    }
    if (serving < 0) return failed({Fault::kIo, "no process can be made", ""});
    if (serving == 0) {
      Server server(settings, service::UniqueFd(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 3)));
      return server.run() == Server::End::kStarterGone ? kStartAgain : 0;
    }
    if (wait_for_end()) break;
    if (std::chrono::steady_clock::now() - begin < kShortLife) std::this_thread::sleep_for(kPause);
  }
  ::unlink(paths.remote_socket().c_str());
  return 0;
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
  const auto listener = service::listen_at(paths.remote_socket());
  if (!listener) return failed(listener.error(), std::move(ready));
  Server::Settings settings;
  settings.url = config.remote.url;
  settings.model = config.remote.model;
  settings.key = std::move(*key);
  settings.slot = config.remote.slot;
  settings.daemon_lock = paths.daemon_lock();
  service::report_ready(std::move(ready), {});
  return keep_serving(paths, std::move(settings), *listener);
}

int run(int argc, char** argv) {
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
  const int status = serve(*paths, service::UniqueFd(ready_fd));
  if (status != kStartAgain) return status;
  // The lock and the sockets close with this program.
  if (const auto own = service::own_executable(); own)
    ::execl(own->c_str(), own->c_str(), static_cast<char*>(nullptr));
  return failed({Fault::kIo, "it cannot start again", ""});
}

}  // namespace

}  // namespace efimd::remote

int main(int argc, char** argv) {
  return efimd::service::run_program("efimd-remote", efimd::remote::run, argc, argv);
}
