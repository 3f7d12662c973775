#pragma once

#include <string_view>

#include "base/error.h"
#include "daemon/client/client.h"
#include "daemon/config/paths.h"

namespace efimd::service {

// efimd-http is a program of its own, beside efimd: efimd and its daemon have no code that listens on
// a network or connects to one.

/// The program of that name as a command, with this process's environment; kNotFound if it is not
/// there.
Result<SpawnPlan> plan_beside(const Paths& paths, std::string_view name);

/// Starts it in the background, and waits until it listens.
Result<void> start_beside(const SpawnPlan& plan);

}  // namespace efimd::service
