#pragma once

#include "base/error.h"
#include "daemon/client/client.h"

namespace efimd::service {

/// Starts `plan` in a session of its own, as nobody's child, with "/" as its folder, stdin and
/// stdout on /dev/null and no other descriptor of this process, and waits until it listens.
///
/// kIo with the daemon's own words when it cannot, kNotReady past the deadline (it is left to
/// itself).
Result<void> spawn_daemon(const SpawnPlan& plan, Deadline deadline);

}  // namespace efimd::service
