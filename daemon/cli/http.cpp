#include "daemon/cli/http.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/client/spawn.h"

namespace efimd::service {

namespace {

constexpr auto kStartMax = std::chrono::seconds(10);
constexpr auto kStopMax = std::chrono::seconds(15);
/// Between looks at the lock, whose holder decides when it is let go.
constexpr auto kLook = std::chrono::milliseconds(10);

/// efimd-http as a command, with this process's environment.
Result<SpawnPlan> http_plan(const Paths& paths, const CommandLine::Http& options) {
  auto plan = SpawnPlan::this_program(paths);
  if (!plan) return plan;
  const auto program = std::filesystem::path(plan->command.front()).parent_path() / "efimd-http";
  if (::access(program.c_str(), X_OK) != 0)
    return fail(Fault::kNotFound, program.string() + ": not there",
                "install efimd-http beside efimd, or set http.enable = false");
  plan->command = {program.string()};
  if (options.port)
    plan->command.insert(plan->command.end(), {"--port", std::to_string(*options.port)});
  if (options.print_token) plan->command.emplace_back("--print-token");
  return plan;
}

int become(const SpawnPlan& plan) {
  std::vector<char*> argv;
  for (const std::string& argument : plan.command)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  return failed({Fault::kIo, plan.command.front() + ": " + std::strerror(errno), ""});
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
  const auto started = spawn_daemon(*plan, std::chrono::steady_clock::now() + kStartMax);
  return started ? 0 : failed(started.error());
}

void start_http_if_enabled(const Paths& paths, const Config& config) {
  if (!config.http.enable || LockFile::is_held(paths.http_lock())) return;
  const auto plan = http_plan(paths, {});
  if (!plan) return static_cast<void>(failed(plan.error()));
  const auto started = spawn_daemon(*plan, std::chrono::steady_clock::now() + kStartMax);
  if (!started) failed(started.error());
}

Result<bool> stop_http(const Paths& paths) {
  if (!LockFile::is_held(paths.http_lock())) return false;
  const auto pid = LockFile::last_holder(paths.http_lock());
  if (!pid || *pid <= 1 || ::kill(*pid, SIGTERM) != 0)
    return fail(Fault::kIo, "efimd-http cannot be asked to finish", "end it with kill");
  const Deadline deadline = std::chrono::steady_clock::now() + kStopMax;
  while (LockFile::is_held(paths.http_lock())) {
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(Fault::kNotReady,
                  fmt::format("process {} was asked to finish, but still runs", *pid),
                  "end it with kill");
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace efimd::service
