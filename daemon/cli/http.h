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

/// At a daemon's start: starts it in the background if the configuration wants it, for clients by
/// HTTP, for an engine elsewhere, or for both. One that runs looks at its configuration again. What
/// fails is said on stderr and is no reason for the daemon not to start. A service manager starts it
/// itself (http_unit()).
void start_http_if_wanted(const Paths& paths, const Config& config, bool by_manager);

/// Asks the running one to finish and waits for its end; false if none runs.
Result<bool> stop_http(const Paths& paths);
/// The same for one that serves the daemon alone, which is there as long as the daemon is.
Result<bool> stop_engine_elsewhere(const Paths& paths);

}  // namespace efimd::service
