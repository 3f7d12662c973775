#include "daemon/cli/beside.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "daemon/client/spawn.h"

namespace efimd::service {

namespace {

constexpr auto kStartMax = std::chrono::seconds(10);

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

}  // namespace efimd::service
