#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace efimd::service {

// A second line of defence around code that reads the files of strangers. It limits what a defect
// there may reach. Linux only; if the kernel lacks it, the daemon serves as usual and says so.

/// Folders and files that a thread may open, with everything below them. Absent paths are ignored.
struct Reachable {
  std::vector<std::filesystem::path> read;
  std::vector<std::filesystem::path> write;  ///< these may be read, too
};

/// The parts that are in force in a daemon.
struct SandboxStatus {
  bool calls = false;
  bool files = false;
  std::string why;  ///< if not all is, though it was asked for
};
std::string sandbox_text(const SandboxStatus& status);

/// From here on, all threads of this process are limited (seccomp). They run no other program, make
/// only local sockets, look into no other process, and use no parts of the kernel that only few
/// programs need. Refused calls fail with EPERM, sockets with EAFNOSUPPORT.
Result<void> forbid_calls();

/// From here on, this thread and those that it starts open only what is `reachable` (landlock).
/// Looking a path up, as stat does, is not refused, nor is what is open already.
Result<void> confine_thread(const Reachable& reachable);

/// The kernel's offer, in words for people; empty: nothing.
std::string offered_sandbox();

/// The needs of the devices and the system's libraries: programs' folders, /proc and /sys, the
/// nodes of GPUs and the caches of their drivers. docs/devices.md says what each driver does
/// without.
Reachable system_files();

/// All files of the user, except `excluded` ones in the home folder; for threads that read the
/// user's projects. Looks at the home folder and the folders that it is in; a folder that is made
/// in one of these later is not in it.
Reachable user_files(const std::filesystem::path& home,
                     bool (*excluded)(const std::filesystem::path& path, bool is_folder));

}  // namespace efimd::service
