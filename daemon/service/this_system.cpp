#include "daemon/service/this_system.h"

#include <fstream>
#include <string>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/close_range.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <mach-o/dyld.h>

#include <array>
#endif

#include <algorithm>
#include <system_error>

namespace efimd::service {

bool peer_is_this_user(int fd) {
#if defined(__linux__)
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof peer &&
         peer.uid == ::geteuid();
#else
  uid_t user = 0;
  gid_t group = 0;
  return ::getpeereid(fd, &user, &group) == 0 && user == ::geteuid();
#endif
}

Result<std::filesystem::path> own_executable() {
#if defined(__APPLE__)
  std::array<char, 4096> path{};
  auto size = static_cast<std::uint32_t>(path.size());
  if (::_NSGetExecutablePath(path.data(), &size) == 0) return std::filesystem::path(path.data());
  return fail(Fault::kIo, "this program does not find its own file");
#else
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return fail(Fault::kIo, "this program does not find its own file: " + error.message(),
                "mount /proc, or start the daemon yourself with 'efimd serve'");
  return path;
#endif
}

void close_on_exec_from(int first) {
#if defined(__linux__) && defined(SYS_close_range)
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) == 0)
    return;
#endif
  const int descriptors_max = static_cast<int>(std::min(::sysconf(_SC_OPEN_MAX), 65536L));
  for (int fd = first; fd < descriptors_max; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool on_battery(const std::filesystem::path& supplies) {
  const auto word = [](const std::filesystem::path& file) {
    std::string read;
    std::ifstream(file) >> read;
    return read;
  };
  bool discharging = false;
  std::error_code error;
  for (const auto& supply : std::filesystem::directory_iterator(supplies, error)) {
    const std::string type = word(supply.path() / "type");
    if (type == "Mains" && word(supply.path() / "online") == "1") return false;
    discharging = discharging || (type == "Battery" && word(supply.path() / "status") == "Discharging");
  }
  return discharging;
}

std::uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

}  // namespace efimd::service
