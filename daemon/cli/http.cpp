#include "daemon/cli/http.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "daemon/cli/beside.h"
#include "daemon/cli/commands/commands.h"

namespace efimd::service {

namespace {

/// efimd-http as a command, with this process's environment.
Result<SpawnPlan> http_plan(const Paths& paths, const CommandLine::Http& options) {
  auto plan = plan_beside(paths, "efimd-http");
  if (!plan) return plan;
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
  const auto started = start_beside(*plan);
  return started ? 0 : failed(started.error());
}

void start_http_if_enabled(const Paths& paths, const Config& config) {
  if (!config.http.enable || LockFile::is_held(paths.http_lock())) return;
  const auto plan = http_plan(paths, {});
  if (!plan) return static_cast<void>(failed(plan.error()));
  const auto started = start_beside(*plan);
  if (!started) failed(started.error());
}

Result<bool> stop_http(const Paths& paths) { return end_beside(paths.http_lock(), "efimd-http"); }

}  // namespace efimd::service
