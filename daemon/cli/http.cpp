#include "daemon/cli/http.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/client/spawn.h"
#include "daemon/config/http_state.h"

namespace efimd::service {

namespace {

/// Then the daemon starts without it, and asks again later.
constexpr auto kLookAgainMax = std::chrono::seconds(2);
constexpr auto kStartMax = std::chrono::seconds(10);
constexpr auto kLook = std::chrono::milliseconds(5);

/// Starts it in the background, and waits until it listens.
Result<void> start(const SpawnPlan& plan) {
  return spawn_daemon(plan, std::chrono::steady_clock::now() + kStartMax);
}

/// efimd-http as a command, with this process's environment.
Result<SpawnPlan> http_plan(const Paths& paths, const CommandLine::Http& options) {
  auto plan = SpawnPlan::beside(paths, "efimd-http");
  if (!plan) return plan;
  if (options.port)
    plan->command.insert(plan->command.end(), {"--port", std::to_string(*options.port)});
  if (options.print_token) plan->command.emplace_back("--print-token");
  return plan;
}

/// The one that runs listens on the wanted port. One that is starting, or ending, is waited for.
bool runs_already(const Paths& paths, const CommandLine::Http& options) {
  const int wanted = options.port.value_or(load_config(paths.config_file).http.port);
  const Deadline deadline = std::chrono::steady_clock::now() + kStartMax;
  HttpState state = http_state(paths);
  while (LockFile::is_held(paths.http_lock()) && !state.port &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLook);
    state = http_state(paths);
  }
  return state.port && (wanted == 0 || *state.port == wanted);
}

int become(const SpawnPlan& plan) {
  std::vector<char*> argv;
  for (const std::string& argument : plan.command)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  return failed({Fault::kIo, plan.command.front() + ": " + std::strerror(errno), ""});
}

/// The running one may not know of the engine elsewhere yet. `elsewhere`: it will.
void look_again(const Paths& paths, bool elsewhere) {
  const auto pid = LockFile::last_holder(paths.http_lock());
  if (!pid || *pid <= 1 || ::kill(*pid, SIGUSR1) != 0 || !elsewhere) return;
  const Deadline deadline = std::chrono::steady_clock::now() + kLookAgainMax;
  while (!LockFile::is_held(paths.remote_lock()) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kLook);
}

}  // namespace

int run_http(const Paths& paths, const CommandLine::Http& options) {
  if (options.stop) {
    const auto stopped = stop_http(paths);
    if (!stopped) return failed(stopped.error());
    fmt::print("{}\n", *stopped ? "efimd-http has finished" : "no efimd-http is running");
    return 0;
  }
  const auto plan = http_plan(paths, options);
  if (!plan) return failed(plan.error());
  if (!options.background) return become(*plan);
  if (runs_already(paths, options)) {
    fmt::print("efimd-http runs already\n");
    return 0;
  }
  const auto started = start(*plan);
  if (!started && runs_already(paths, options)) {  // another command was first
    fmt::print("efimd-http runs already\n");
    return 0;
  }
  return started ? 0 : failed(started.error());
}

void start_http_if_wanted(const Paths& paths, const Config& config, bool by_manager) {
  const bool elsewhere = !config.remote.url.empty();
  if (LockFile::is_held(paths.http_lock())) return look_again(paths, elsewhere);
  if (by_manager) return;
  // A daemon that runs has its engine elsewhere already.
  const bool daemon_runs = LockFile::is_held(paths.daemon_lock());
  if (!config.http.enable && (!elsewhere || daemon_runs)) return;
  auto plan = http_plan(paths, {});
  if (!plan) return static_cast<void>(failed(plan.error()));
  if (!config.http.enable) {
    // An older one may have another environment, with another key.
    if (const auto ended = stop_engine_elsewhere(paths); !ended)
      return static_cast<void>(failed(ended.error()));
    plan->command.emplace_back("--engine-only");
  }
  if (const auto started = start(*plan); !started) failed(started.error());
}

Result<bool> stop_http(const Paths& paths) { return end_holder(paths.http_lock(), "efimd-http"); }

Result<bool> stop_engine_elsewhere(const Paths& paths) {
  return end_holder(paths.remote_lock(), "efimd-http");
}

}  // namespace efimd::service
