#include "net/program/doors.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "daemon/client/spawn.h"
#include "daemon/config/engine_key.h"
#include "daemon/config/http_state.h"
#include "daemon/config/this_system.h"

namespace efimd::net {

namespace {

constexpr auto kStartMax = std::chrono::seconds(10);

void say(const std::string& line) { std::fprintf(stderr, "efimd-http: %s\n", line.c_str()); }

/// Another process has the lock.
tl::unexpected<Error> runs_already(const std::filesystem::path& lock) {
  const auto holder = service::LockFile::last_holder(lock);
  return fail(Fault::kNotReady,
              "efimd-http runs already (pid " + std::to_string(holder.value_or(0)) + ")",
              "end that one first");
}

}  // namespace

Doors::Doors(service::Paths paths, Options options, service::UniqueFd ready)
    : paths_(std::move(paths)), options_(options), ready_(std::move(ready)) {}

void Doors::report(const Error& error) {
  if (http_lock_) service::note_http(paths_, tl::unexpected(error));
  service::report_ready(std::move(ready_), tl::unexpected(error));
}

Result<Serve> Doors::prepare() {
  const service::Config config = service::load_config(paths_.config_file);
  if (auto folder = service::ensure_private_directory(paths_.runtime_dir); !folder)
    return tl::unexpected(folder.error());
  std::optional<http::Server::Settings> http;
  if (!options_.engine_only) {
    if (auto taken = take_http(); !taken) return tl::unexpected(taken.error());
    auto settings = http_settings(config);
    if (!settings) return tl::unexpected(settings.error());
    http = std::move(*settings);
  }
  config_ = config;
  if (const auto taken = take_engine(config); !taken) {
    drop_engine();
    if (options_.engine_only) return tl::unexpected(taken.error());
    if (!config.remote.url.empty()) say(taken.error().message());  // HTTP needs it not
  }
  return [this, http = std::move(http)](pid_t starter) { return serve(http, starter); };
}

bool Doors::has_changed() const {
  const service::Config now = service::load_config(paths_.config_file);
  if (!now.file_read && !now.warnings.empty()) return false;  // malformed: as the daemon does (D-7)
  if (now.remote != config_.remote) return true;
  if (!http_lock_) return false;
  if (now.http != config_.http || now.completion != config_.completion) return true;
  if (!token_) return false;
  const auto token = http::token_in(paths_.http_token_file().string());
  return token && *token != *token_;
}

Result<void> Doors::take_http() {
  if (http_lock_) return {};
  auto lock = service::LockFile::try_lock(paths_.http_lock());
  if (!lock) return tl::unexpected(lock.error());
  if (!*lock) return runs_already(paths_.http_lock());
  http_lock_ = std::move(*lock);
  service::note_http(paths_, std::nullopt);
  return {};
}

Result<void> Doors::take_engine(const service::Config& config) {
  if (config.remote.url.empty())
    return fail(Fault::kNotFound, "no engine elsewhere is configured", "set engine.url");
  auto key = service::find_engine_key(config.remote.key_file, std::getenv("EFIMD_ENGINE_KEY"));
  if (!key) return tl::unexpected(key.error());
  if (!engine_lock_) {
    // One that serves the daemon alone makes room. One that serves both has http.lock, too.
    if (!options_.engine_only)
      if (const auto ended = service::end_holder(paths_.remote_lock(), "efimd-http"); !ended)
        return tl::unexpected(ended.error());
    auto lock = service::LockFile::try_lock(paths_.remote_lock());
    if (!lock) return tl::unexpected(lock.error());
    if (!*lock) return runs_already(paths_.remote_lock());
    engine_lock_ = std::move(*lock);
  }
  if (!engine_listener_) {
    auto listener = service::listen_at(paths_.remote_socket());
    if (!listener) return tl::unexpected(listener.error());
    engine_listener_ = std::move(*listener);
  }
  engine_.emplace();
  engine_->url = config.remote.url;
  engine_->model = config.remote.model;
  engine_->key = std::move(*key);
  engine_->slot = config.remote.slot;
  return {};
}

void Doors::drop_engine() {
  engine_.reset();
  if (engine_listener_) ::unlink(paths_.remote_socket().c_str());
  engine_listener_.reset();
  engine_lock_.reset();
}

Result<http::Server::Settings> Doors::http_settings(const service::Config& config) {
  auto plan = service::SpawnPlan::beside(paths_, "efimd");
  if (!plan) return tl::unexpected(plan.error());
  http::Server::Settings settings;
  settings.port = options_.port.value_or(config.http.port);
  if (config.http.require_token) {
    auto token = http::token_in(paths_.http_token_file().string());
    if (!token) return tl::unexpected(token.error());
    settings.token = std::move(*token);
  }
  token_ = settings.token;
  settings.defaults = {config.completion.tokens_max, config.completion.temperature,
                       std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count()};
  settings.connect = [this, plan = plan->serving()](service::Deadline deadline) {
    return service::connect_or_spawn(paths_, plan, deadline);
  };
  settings.log = say;
  return settings;
}

/// In the serving process.
int Doors::serve(const std::optional<http::Server::Settings>& http, pid_t starter) {
  std::signal(SIGUSR2, [](int) {});  // `ends` looks itself
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGUSR2);  // without it a server by HTTP does not see its starter's end
#endif
  const auto starter_gone = [starter] { return ::getppid() != starter; };
  std::atomic<bool> ending = false;
  std::optional<remote::Server> engine;
  if (engine_) {
    remote::Server::Settings settings = *engine_;
    settings.ends = [&] { return ending || asked_to_end() || starter_gone(); };
    if (!http) settings.daemon_lock = paths_.daemon_lock();  // else HTTP may start the next daemon
    engine.emplace(std::move(settings),
                   service::UniqueFd(::fcntl(engine_listener_.get(), F_DUPFD_CLOEXEC, 3)));
  }
  if (!http) {
    service::report_ready(std::move(ready_), {});
    engine->run();
    return starter_gone() ? kStarterGone : 0;
  }
  http::Server server(*http);
  const auto port = server.listen();
  if (!port) {
    report(port.error());
    say(port.error().message());
    return 1;
  }
  say("listens on 127.0.0.1:" + std::to_string(*port) +
      (http->token ? ", token in " + paths_.http_token_file().string()
                   : ", without a token: every user of this machine may use it"));
  service::note_http(paths_, *port);
  service::report_ready(std::move(ready_), {});
  if (starter_gone()) return kStarterGone;  // before its end could be told
  std::thread beside([&] {
    if (engine) engine->run();
  });
  server.run();
  ending = true;
  beside.join();
  return starter_gone() ? kStarterGone : 0;
}

void Doors::close(bool asked) {
  if (!engine_lock_) return;
  drop_engine();
  if (!asked || options_.engine_only || !service::LockFile::is_held(paths_.daemon_lock())) return;
  auto plan = service::SpawnPlan::beside(paths_, "efimd-http");
  if (!plan) return say(plan.error().message());
  plan->command.emplace_back("--engine-only");
  const auto started = service::spawn_daemon(*plan, std::chrono::steady_clock::now() + kStartMax);
  if (!started) say(started.error().message());
}

}  // namespace efimd::net
