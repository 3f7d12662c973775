#pragma once

#include <filesystem>
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

/// Asks the holder of `lock`, a program of that name, to finish and waits for its end; false if there
/// is none. kIo if it cannot be asked, kNotReady if it does not end.
Result<bool> end_holder(const std::filesystem::path& lock, std::string_view name);

}  // namespace efimd::service
