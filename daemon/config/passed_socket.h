#pragma once

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "daemon/config/local_socket.h"

namespace efimd::service {

/// The listening socket that a service manager passed to this process: LISTEN_PID names us,
/// LISTEN_FDS is 1, descriptor 3 is a Unix stream socket that listens at `path` (systemd's
/// sd_listen_fds(3)). nullopt if nothing was passed. kBadInput if something else was passed,
/// because then the manager and the editors would wait at different places.
///
/// The variables are removed from the environment, and the descriptor is made close-on-exec.
Result<std::optional<UniqueFd>> take_passed_socket(const std::filesystem::path& path);

}  // namespace efimd::service
