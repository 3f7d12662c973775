#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"

namespace efimd::service {

// The differences between Linux, macOS and the BSDs, and nothing else.

/// Whether the other end of a Unix socket runs as this user (SO_PEERCRED; getpeereid elsewhere).
bool peer_is_this_user(int fd);
/// The process that listened at the other end of this local socket; nullopt where the system does not say.
std::optional<long> peer_process(int fd);

/// The executable of this process.
Result<std::filesystem::path> own_executable();

/// The linker's id of this program (Linux: the GNU build id), hexadecimal; empty if there is none.
std::string linked_id();

/// Marks descriptors from `first` on close-on-exec. Async-signal-safe.
void close_on_exec_from(int first);

/// Whether the machine runs on battery: one is discharging, and no mains supply is online. False if
/// the system does not say. `supplies` is Linux's power supply class.
bool on_battery(const std::filesystem::path& supplies = "/sys/class/power_supply");

/// The least memory limit of the process's control groups, as a container's; 0: none. `root` is as in
/// memory_groups().
std::uint64_t cgroup_memory_bytes(const std::filesystem::path& root = "/");

/// Bytes of memory in this machine, or of its part that control groups and RLIMIT_AS leave to the
/// process; 0 if the system does not say.
std::uint64_t memory_bytes();

}  // namespace efimd::service
