#pragma once

#include <filesystem>
#include <memory>

#include "daemon/completion/remote/remote_engine.h"
#include "daemon/config/config.h"

namespace efimd::service {

/// The engine elsewhere as the daemon sees it: the program efimd-http behind a local socket (its
/// header net/remote/server.h has the messages). The daemon itself connects nowhere else.
std::shared_ptr<completion::RemoteEngine> make_remote_link(const std::filesystem::path& socket,
                                                           const RemoteConfig& config);

}  // namespace efimd::service
