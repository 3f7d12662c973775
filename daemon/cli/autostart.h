#pragma once

#include <filesystem>
#include <string>

namespace efimd::service {

// The files with which a service manager starts the daemon. systemd's user manager holds the
// socket, so that the first editor starts the daemon; launchd does it on macOS.

/// efimd.service: this program as `efimd serve`, restarted if it fails, with no more rights than it
/// needs. Only options that a user manager can apply without namespaces of its own.
std::string service_unit(const std::filesystem::path& program);

/// efimd.socket, listening at `socket`; "%t" stands for $XDG_RUNTIME_DIR.
std::string socket_unit(const std::string& socket);

/// A launchd agent that keeps the daemon running. Valid XML, but never tried on a Mac.
std::string launch_agent(const std::filesystem::path& program);

inline constexpr char kServiceUnit[] = "efimd.service";
inline constexpr char kSocketUnit[] = "efimd.socket";
inline constexpr char kLaunchLabel[] = "efimd";
inline constexpr char kUserSocket[] = "%t/efimd/daemon.sock";  ///< where Paths puts it by default

}  // namespace efimd::service
