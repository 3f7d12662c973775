#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "daemon/client/client.h"
#include "daemon/config/config.h"
#include "daemon/config/paths.h"

namespace efimd::service {

// efimd-http and efimd-remote are programs of their own, beside efimd: efimd and its daemon have no
// code that listens on a network or connects to one. What starts and ends them is here.

/// The program of that name as a command, with this process's environment; kNotFound if it is not
/// there.
Result<SpawnPlan> plan_beside(const Paths& paths, std::string_view name);

/// Starts it in the background, and waits until it listens.
Result<void> start_beside(const SpawnPlan& plan);

/// Asks the holder of `lock` to finish and waits for its end; false if there is none.
Result<bool> end_beside(const std::filesystem::path& lock, std::string_view name);

/// Starts efimd-remote, in the place of an older one, if the configuration names an engine elsewhere
/// and no daemon runs. What fails is said on stderr: then the local engine answers alone.
void start_remote_if_set(const Paths& paths, const Config& config);

}  // namespace efimd::service
