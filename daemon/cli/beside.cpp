#include "daemon/cli/beside.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "daemon/cli/commands/commands.h"
#include "daemon/client/spawn.h"

namespace efimd::service {

namespace {

constexpr auto kStartMax = std::chrono::seconds(10);
constexpr auto kStopMax = std::chrono::seconds(15);
/// Between looks at the lock, whose holder decides when it is let go.
constexpr auto kLook = std::chrono::milliseconds(10);

}  // namespace

Result<SpawnPlan> plan_beside(const Paths& paths, std::string_view name) {
  auto plan = SpawnPlan::this_program(paths);
  if (!plan) return plan;
  const auto program = std::filesystem::path(plan->command.front()).parent_path() / name;
  if (::access(program.c_str(), X_OK) != 0)
    return fail(Fault::kNotFound, program.string() + ": not there",
                fmt::format("install {} beside efimd", name));
  plan->command = {program.string()};
  return plan;
}

Result<void> start_beside(const SpawnPlan& plan) {
  return spawn_daemon(plan, std::chrono::steady_clock::now() + kStartMax);
}

Result<bool> end_beside(const std::filesystem::path& lock, std::string_view name) {
  if (!LockFile::is_held(lock)) return false;
  const auto pid = LockFile::last_holder(lock);
  if (!pid || *pid <= 1 || ::kill(*pid, SIGTERM) != 0)
    return fail(Fault::kIo, fmt::format("{} cannot be asked to finish", name), "end it with kill");
  const Deadline deadline = std::chrono::steady_clock::now() + kStopMax;
  while (LockFile::is_held(lock)) {
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(Fault::kNotReady,
                  fmt::format("process {} was asked to finish, but still runs", *pid),
                  "end it with kill");
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

void start_remote_if_set(const Paths& paths, const Config& config) {
  if (config.remote.url.empty() || LockFile::is_held(paths.daemon_lock())) return;
  // An older one may know another address.
  if (const auto ended = end_beside(paths.remote_lock(), "efimd-remote"); !ended)
    return static_cast<void>(failed(ended.error()));
  const auto plan = plan_beside(paths, "efimd-remote");
  if (!plan) return static_cast<void>(failed(plan.error()));
  if (const auto started = start_beside(*plan); !started) failed(started.error());
}

}  // namespace efimd::service
