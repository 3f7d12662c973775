#include "daemon/config/sandbox.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#ifdef __linux__
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "daemon/config/local_socket.h"
#endif

namespace efimd::service {

namespace fs = std::filesystem;

std::string sandbox_text(const SandboxStatus& status) {
  const std::string_view in_force = status.calls && status.files ? "calls and files"
                                    : status.calls               ? "calls, not files"
                                    : status.files               ? "files, not calls"
                                                                 : "none";
  return status.why.empty() ? std::string(in_force) : fmt::format("{} ({})", in_force, status.why);
}

#ifdef __linux__

namespace {

Error system_error(const char* what) {
  return {Fault::kUnsupported, fmt::format("{}: {}", what, std::strerror(errno)), ""};
}

bool forbid_new_rights() { return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; }

// --- Calls -----------------------------------------------------------------------------------------

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

constexpr auto kForbidden =
    std::to_array<std::uint32_t>({SYS_execve,
                                  SYS_execveat,  // the daemon runs nothing; bridges start daemons
#ifndef EFIMD_SANITIZED                          // LeakSanitizer stops its own threads with it
                                  SYS_ptrace,
#endif
                                  SYS_process_vm_readv,
                                  SYS_process_vm_writev,
                                  SYS_kcmp,
                                  SYS_pidfd_open,
                                  SYS_io_uring_setup,
                                  SYS_io_uring_enter,
                                  SYS_io_uring_register,
                                  SYS_bpf,
                                  SYS_perf_event_open,
                                  SYS_userfaultfd,
                                  SYS_mount,
                                  SYS_umount2,
                                  SYS_pivot_root,
                                  SYS_chroot,
                                  SYS_unshare,
                                  SYS_setns,
                                  SYS_fsopen,
                                  SYS_fsconfig,
                                  SYS_fsmount,
                                  SYS_fspick,
                                  SYS_open_tree,
                                  SYS_move_mount,
                                  SYS_keyctl,
                                  SYS_add_key,
                                  SYS_request_key,
                                  SYS_kexec_load,
                                  SYS_init_module,
                                  SYS_finit_module,
                                  SYS_delete_module,
                                  SYS_reboot,
                                  SYS_swapon,
                                  SYS_swapoff,
                                  SYS_open_by_handle_at,
                                  SYS_name_to_handle_at,
                                  SYS_quotactl,
                                  SYS_acct,
                                  SYS_settimeofday,
                                  SYS_clock_settime,
                                  SYS_clock_adjtime,
                                  SYS_adjtimex,
                                  SYS_sethostname,
                                  SYS_setdomainname,
                                  SYS_syslog,
                                  SYS_personality,
                                  SYS_setuid,
                                  SYS_setgid,
                                  SYS_setreuid,
                                  SYS_setregid,
                                  SYS_setresuid,
                                  SYS_setresgid,
                                  SYS_setgroups,
                                  SYS_vhangup});

constexpr sock_filter load(std::size_t offset) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)};
}
constexpr sock_filter give(std::uint32_t what) { return {BPF_RET | BPF_K, 0, 0, what}; }
/// Goes `then` instructions on if the loaded word is `value`, else `otherwise`.
constexpr sock_filter if_equal(std::uint32_t value, std::size_t then, std::size_t otherwise) {
  return {BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint8_t>(then),
          static_cast<std::uint8_t>(otherwise), value};
}

std::vector<sock_filter> filter() {
  constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> program = {load(offsetof(seccomp_data, arch)),
                                      if_equal(kArchitecture, 1, 0), give(kRefuse),
                                      load(offsetof(seccomp_data, nr))};
#ifdef __x86_64__
  constexpr std::uint32_t kX32 = 0x40000000;  // the same calls under other numbers
  program.push_back({BPF_JMP | BPF_JGE | BPF_K, 0, 1, kX32});
  program.push_back(give(kRefuse));
#endif
  for (const std::uint32_t call : kForbidden) {
    program.push_back(if_equal(call, 0, 1));
    program.push_back(give(kRefuse));
  }
  // socket(family, ...) and socketpair(family, ...)
  program.push_back(if_equal(SYS_socket, 1, 0));
  program.push_back(if_equal(SYS_socketpair, 0, 3));
  program.push_back(load(offsetof(seccomp_data, args)));
  program.push_back(if_equal(AF_UNIX, 1, 0));
  program.push_back(give(SECCOMP_RET_ERRNO | EAFNOSUPPORT));
  program.push_back(give(SECCOMP_RET_ALLOW));
  return program;
}

// --- Files -----------------------------------------------------------------------------------------

// By the kernel's documentation, userspace-api/landlock.rst; Debian 12's headers lack the later ones.
constexpr std::uint64_t kExecute = 1U << 0U, kWriteFile = 1U << 1U, kReadFile = 1U << 2U,
                        kReadFolder = 1U << 3U, kRefer = 1U << 13U, kTruncate = 1U << 14U,
                        kDeviceControl = 1U << 15U;
constexpr std::uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kDeviceControl;
constexpr std::uint64_t kReading = kExecute | kReadFile | kReadFolder;

/// The kernel's version of landlock; 0 or less: none.
int landlock_version() {
  return static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

std::uint64_t known_rights(int version) {
  std::uint64_t rights = kRefer - 1;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kDeviceControl;
  return rights;
}

/// False if the kernel refuses it; a path that is not there, or cannot be opened, is no failure.
/// Nothing is asked of the file itself, since its file system may stall.
bool allow(int ruleset, const fs::path& path, std::uint64_t rights) {
  const UniqueFd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file) return true;
  landlock_path_beneath_attr rule{};
  rule.parent_fd = file.get();
  const auto add = [&](std::uint64_t allowed) {
    rule.allowed_access = allowed;
    return ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  };
  // EINVAL: it is no folder. EBADFD: it is none that landlock knows, as a pipe.
  return add(rights) || (errno == EINVAL && add(rights & kOfFiles)) || errno == EBADFD;
}

template <class Visit>
void for_each_entry(const fs::path& folder, Visit visit) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) visit(*entries);
}

}  // namespace

Result<void> forbid_calls() {
  if (kArchitecture == 0) return fail(Fault::kUnsupported, "no filter for this processor's calls");
  std::vector<sock_filter> instructions = filter();
  const sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  if (!forbid_new_rights() ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    return tl::unexpected(system_error("seccomp"));
  return {};
}

Result<void> confine_thread(const Reachable& reachable) {
  const int version = landlock_version();
  if (version < 1) return tl::unexpected(system_error("landlock"));
  const std::uint64_t rights = known_rights(version);
  const std::uint64_t attributes = rights;  // landlock_ruleset_attr, as its first version was
  const UniqueFd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!ruleset) return tl::unexpected(system_error("landlock"));
  for (const fs::path& path : reachable.read)
    if (!allow(ruleset.get(), path, kReading & rights))
      return tl::unexpected(system_error(path.c_str()));
  for (const fs::path& path : reachable.write)
    if (!allow(ruleset.get(), path, rights & ~kExecute))
      return tl::unexpected(system_error(path.c_str()));
  if (!forbid_new_rights() || ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
    return tl::unexpected(system_error("landlock"));
  return {};
}

std::string offered_sandbox() {
  const int version = landlock_version();
  const bool calls = ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 && kArchitecture != 0;
  return fmt::format("{}{}{}", calls ? "seccomp" : "", calls && version > 0 ? " and " : "",
                     version > 0 ? fmt::format("landlock {}", version) : "");
}

Reachable system_files() {
  Reachable files;
  files.read = {"/usr",
                "/lib",
                "/lib32",
                "/lib64",
                "/bin",
                "/etc",
                "/opt",
                "/nix",
                "/proc",
                "/sys",
                "/run/opengl-driver",
                "/run/udev"};
  files.write = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                 "/dev/tty",  "/dev/dri",  "/dev/kfd",  "/dev/dxg",    "/dev/shm"};
  for_each_entry("/dev", [&](const fs::directory_entry& entry) {
    if (entry.path().filename().string().starts_with("nvidia")) files.write.push_back(entry.path());
  });
  // The folders in which the loader was told to look for drivers, too.
  if (const char* const folders = std::getenv("LD_LIBRARY_PATH"); folders != nullptr)
    for (std::string_view rest = folders; !rest.empty();) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) files.read.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/')
    for (const char* const cache : {".nv", ".cache/nvidia", ".cache/mesa_shader_cache",
                                    ".cache/mesa_shader_cache_db", ".cache/radv_builtin_shaders64"})
      files.write.push_back(fs::path(home) / cache);
  return files;
}

Reachable user_files(const fs::path& home, bool (*excluded)(const fs::path& path, bool is_folder)) {
  Reachable files;
  fs::path folder = "/";
  const fs::path inside = home.lexically_normal().relative_path();
  const auto add_all_but = [&](const fs::path& next) {
    for_each_entry(folder, [&](const fs::directory_entry& entry) {
      // These two are known from the folder's list. What a link leads to has a place of its own.
      std::error_code error;
      if (entry.path() == next || entry.is_symlink(error)) return;
      if (next.empty() && excluded(entry.path(), entry.is_directory(error))) return;
      files.read.push_back(entry.path());
    });
  };
  for (const fs::path& part : inside) {
    if (part.empty()) continue;
    add_all_but(folder / part);
    folder /= part;
  }
  add_all_but({});
  return files;
}

#else  // other systems have nothing of the kind for a program without an owner's rights

Result<void> forbid_calls() { return fail(Fault::kUnsupported, "this system offers none"); }
Result<void> confine_thread(const Reachable&) {
  return fail(Fault::kUnsupported, "this system offers none");
}
std::string offered_sandbox() { return {}; }
Reachable system_files() { return {}; }
Reachable user_files(const fs::path&, bool (*)(const fs::path&, bool)) { return {}; }

#endif

}  // namespace efimd::service
