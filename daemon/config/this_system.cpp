#include "daemon/config/this_system.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <string>

#if defined(__linux__)
#include <fmt/format.h>
#include <link.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <mach-o/dyld.h>

#include <array>
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "base/control_groups.h"

namespace efimd::service {

std::optional<long> peer_process(int fd) {
#ifdef SO_PEERCRED
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) return peer.pid;
#else
  static_cast<void>(fd);
#endif
  return std::nullopt;
}

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

#if defined(__linux__)

namespace {

/// A note's name and description are padded to this.
constexpr std::size_t kNoteAlign = 4;
std::size_t padded(std::size_t bytes) { return (bytes + kNoteAlign - 1) / kNoteAlign * kNoteAlign; }

/// The build id among the notes at `at`, hexadecimal; empty when it is not there (elf(5), "Notes").
std::string id_in_notes(const std::byte* at, std::size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const std::size_t name = sizeof note, description = name + padded(note.n_namesz);
    const std::size_t end = description + padded(note.n_descsz);
    if (end > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(at + name, "GNU", 4) == 0) {
      std::string id;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", std::to_integer<unsigned>(at[description + i]));
      return id;
    }
    at += end;
    bytes -= end;
  }
  return {};
}

}  // namespace

std::string linked_id() {
  std::string id;
  // The first object that the loader tells of is the program itself.
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = object->dlpi_phdr[i];
          auto& id_found = *static_cast<std::string*>(found);
          if (part.p_type == PT_NOTE && id_found.empty())
            id_found = id_in_notes(
                reinterpret_cast<const std::byte*>(object->dlpi_addr + part.p_vaddr), part.p_memsz);
        }
        return 1;
      },
      &id);
  return id;
}

#else

std::string linked_id() { return {}; }

#endif

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
    discharging =
        discharging || (type == "Battery" && word(supply.path() / "status") == "Discharging");
  }
  return discharging;
}

namespace {

std::uint64_t machine_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

}  // namespace

std::uint64_t cgroup_memory_bytes(const std::filesystem::path& root) {
  std::uint64_t least = 0;
  for (const MemoryGroup& group : memory_groups(root))
    least = least == 0 ? group.limit_bytes : std::min(least, group.limit_bytes);
  return least;
}

std::uint64_t memory_bytes() {
  std::uint64_t least = machine_memory_bytes();
  if (const std::uint64_t group = cgroup_memory_bytes(); group != 0) least = std::min(least, group);
  rlimit space{};  // of addresses, as by ulimit -v
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    least = std::min<std::uint64_t>(least, space.rlim_cur);
  return least;
}

}  // namespace efimd::service
