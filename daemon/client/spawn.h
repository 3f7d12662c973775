#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "daemon/client/client.h"

namespace efimd::service {

/// Starts `plan` detached from this process, in a session of its own, and waits until it listens.
/// Its folder is "/", its stdin and stdout are /dev/null, and it gets no other descriptor.
///
/// kIo with the daemon's own message if it cannot listen. kNotReady past the deadline; then the
/// daemon goes on starting.
Result<void> spawn_daemon(const SpawnPlan& plan, Deadline deadline);

/// Asks the holder of `lock`, a program of that name, by SIGTERM to finish and waits for its end; false
/// if there is none. kBadInput if the lock's folder is open to others, kIo if the holder cannot be
/// asked, kNotReady if it does not end.
Result<bool> end_holder(const std::filesystem::path& lock, std::string_view name);

/// Waits until `pid`, which was asked to finish, holds `lock` no more; the next may hold it already.
/// kNotReady if it does not end.
Result<void> wait_for_end(const std::filesystem::path& lock, std::optional<int> pid);

}  // namespace efimd::service
