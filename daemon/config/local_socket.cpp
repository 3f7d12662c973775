#include "daemon/config/local_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

/// How often a lock that another process holds is tried again; the holder decides the outcome, not
/// this.
constexpr auto kLockRetry = std::chrono::milliseconds(2);
/// Connections that the kernel queues while the daemon is busy; more are refused and tried again by
/// their bridge.
constexpr int kBacklog = 128;

std::string errno_text() { return std::strerror(errno); }

/// 0 and `fd`, or the errno of flock().
int flock_errno(int fd) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

Result<UniqueFd> open_lock_file(const fs::path& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file)
    return fail(Fault::kIo, path.string() + ": cannot be opened: " + errno_text(),
                "check the folder's permissions");
  return file;
}

Result<sockaddr_un> address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path)
    return fail(Fault::kBadInput, path.string() + ": too long for a socket's path",
                "set EFIMD_RUNTIME_DIR to a folder with a shorter name");
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  return address;
}

/// 0: no limit.
void set_send_timeout(int fd, std::chrono::microseconds timeout) {
  timeval limit{};
  limit.tv_sec = static_cast<decltype(limit.tv_sec)>(timeout.count() / 1000000);
  limit.tv_usec = static_cast<decltype(limit.tv_usec)>(timeout.count() % 1000000);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void limit_sending(int fd, Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
  set_send_timeout(fd, std::max(left, std::chrono::microseconds(1000)));
}

Result<UniqueFd> open_socket() {
#ifdef SOCK_CLOEXEC
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
#else
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  if (fd) ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
#endif
  if (!fd) return fail(Fault::kIo, "no socket: " + errno_text());
  return fd;
}

Result<void> check_private(const fs::path& path) {
  const auto refuse = [&](const std::string& why) {
    return fail(Fault::kBadInput, path.string() + ": " + why,
                "chmod 700 it if it is yours, or set EFIMD_RUNTIME_DIR to a folder of your own");
  };
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return refuse("cannot be examined: " + errno_text());
  if (S_ISLNK(info.st_mode))
    return refuse("is a symbolic link, and the socket's folder must not be");
  if (!S_ISDIR(info.st_mode)) return refuse("is not a folder");
  if (info.st_uid != ::geteuid()) return refuse("belongs to another user");
  if ((info.st_mode & 077U) != 0) return refuse("is open to other users");
  return {};
}

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<void> ensure_private_directory(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(Fault::kIo, path.string() + ": cannot be created: " + errno_text(),
                "create it with mode 0700, or set EFIMD_RUNTIME_DIR to a folder of your own");
  return check_private(path);
}

Result<std::optional<LockFile>> LockFile::try_lock(const fs::path& path) {
  auto file = open_lock_file(path);
  if (!file) return tl::unexpected(file.error());
  const int failure = flock_errno(file->get());
  if (failure == EWOULDBLOCK) return std::optional<LockFile>();
  if (failure != 0)
    return fail(Fault::kIo, path.string() + ": cannot be locked: " + std::strerror(failure));
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file->get(), 0) != 0 ||
      ::pwrite(file->get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return fail(Fault::kIo, path.string() + ": cannot be written: " + errno_text(),
                "is the disk full?");
  return std::optional<LockFile>(LockFile(std::move(*file)));
}

Result<LockFile> LockFile::lock(const fs::path& path, Deadline deadline) {
  for (;;) {
    auto held = try_lock(path);
    if (!held) return tl::unexpected(held.error());
    if (*held) return std::move(**held);
    if (std::chrono::steady_clock::now() >= deadline) {
      const auto holder = last_holder(path);
      return fail(Fault::kNotReady,
                  path.string() + ": held by process " + (holder ? std::to_string(*holder) : "?"),
                  "wait for it to finish, or end it");
    }
    std::this_thread::sleep_for(kLockRetry);
  }
}

bool LockFile::is_held(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::optional<int> LockFile::last_holder(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::array<char, 32> text{};
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
  int pid = 0;
  if (size <= 0 || std::from_chars(text.data(), text.data() + size, pid).ec != std::errc())
    return std::nullopt;
  return pid;
}

void make_private_folder(const fs::path& path) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  ::mkdir(path.c_str(), 0700);
}

Result<UniqueFd> listen_at(const fs::path& path) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  auto fd = open_socket();
  if (!fd) return fd;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return fail(
        Fault::kIo,
        path.string() + ": what is in the socket's place cannot be removed: " + errno_text(),
        "remove it by hand, or set EFIMD_RUNTIME_DIR to another folder");
  const auto refuse = [&] {
    return fail(Fault::kIo, path.string() + ": cannot listen: " + errno_text(),
                "check the folder's permissions, or set EFIMD_RUNTIME_DIR");
  };
  // Nobody can connect between bind() and chmod(): the folder is 0700, and listen() comes after.
  if (::bind(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(fd->get(), kBacklog) != 0)
    return refuse();
  return fd;
}

Result<UniqueFd> connect_to(const fs::path& path, Deadline deadline) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  auto fd = open_socket();
  if (!fd) return fd;
  // While the listener's queue is full, connect() waits as long as a send may take.
  limit_sending(fd->get(), deadline);
  while (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    if (errno == EINTR && std::chrono::steady_clock::now() < deadline) {
      limit_sending(fd->get(), deadline);
      continue;
    }
    if (errno == EAGAIN || errno == EINTR)
      return fail(Fault::kNotReady, path.string() + ": the daemon takes no connections",
                  "end it with 'efimd stop', or kill it if that does not help");
    const bool absent = errno == ENOENT || errno == ECONNREFUSED;
    return fail(absent ? Fault::kNotFound : Fault::kIo,
                path.string() + ": cannot connect: " + errno_text());
  }
  set_send_timeout(fd->get(), std::chrono::microseconds(0));
  return fd;
}

void report_ready(UniqueFd ready, const Result<void>& outcome) {
  if (!ready) return;
  std::string line = outcome ? std::string(kReadyLine) : outcome.error().message() + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(ready.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the starter has gone; nobody needs to know
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace efimd::service
