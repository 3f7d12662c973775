#pragma once

#include <optional>

#include "base/error.h"
#include "daemon/cli/options.h"
#include "daemon/config/config.h"
#include "daemon/config/paths.h"

namespace efimd::service {

// What starts and ends efimd-http (beside.h).

/// `efimd http`: becomes efimd-http, or starts it in the background, or ends it.
int run_http(const Paths& paths, const CommandLine::Http& options);

/// Starts it in the background where the configuration says so and none runs. What fails is said on
/// stderr and is no reason for the daemon not to start.
void start_http_if_enabled(const Paths& paths, const Config& config);

/// Asks the running one to finish and waits for its end; false if none runs.
Result<bool> stop_http(const Paths& paths);

}  // namespace efimd::service
