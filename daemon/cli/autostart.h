#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace efimd::service {

// The files with which a service manager starts the daemon. systemd's user manager holds the
// socket, so that the first editor starts the daemon; launchd does it on macOS.

/// With namespaces of its own, a service has fewer rights, but some systems give users none.
enum class Rights { kOwnUsers, kPlain };

/// Names and values that the units set, where the service manager's own environment says otherwise.
using UnitEnvironment = std::vector<std::pair<std::string, std::string>>;

/// This program as `efimd serve`, restarted if it fails, with no more rights than it needs.
/// efimd.service has users of its own. systemd starts efimd-plain.service in its place if it cannot
/// give it these; the waiting editors are then served by that one.
std::string service_unit(const std::filesystem::path& program, Rights rights,
                         const UnitEnvironment& environment = {});

/// efimd-http.service: the program beside this one, which starts with the daemon. The daemon's units
/// have no network, so there the daemon itself does not start it.
std::string http_unit(const std::filesystem::path& program,
                      const UnitEnvironment& environment = {});

/// efimd.socket, listening at `socket`, which is kUserSocket or made by socket_path().
std::string socket_unit(const std::string& socket);
/// A path whose percents begin nothing.
std::string socket_path(const std::filesystem::path& socket);

/// A launchd agent that keeps the daemon running. Valid XML, but never tried on a Mac.
std::string launch_agent(const std::filesystem::path& program);

inline constexpr char kServiceUnit[] = "efimd.service";
inline constexpr char kPlainUnit[] = "efimd-plain.service";
inline constexpr char kHttpUnit[] = "efimd-http.service";
inline constexpr char kSocketUnit[] = "efimd.socket";
inline constexpr char kLaunchLabel[] = "efimd";
inline constexpr char kUserSocket[] = "%t/efimd/daemon.sock";  ///< where Paths puts it by default

}  // namespace efimd::service
