#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "daemon/config/this_system.h"  // peer_is_this_user()

namespace efimd::service {

using Deadline = std::chrono::steady_clock::time_point;

/// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Makes `path` a folder that only this user can open: creates it (and its parents) with mode 0700,
/// or checks one that is there. kBadInput if it is a symbolic link, not a folder, not ours, or open
/// to others. Anyone could have put a socket there to read the user's text, so it is neither used
/// nor repaired silently.
Result<void> ensure_private_directory(const std::filesystem::path& path);

/// Makes the folder, 0700 whatever the umask, and its parents if need be. One that is there stays
/// as it is. A failure shows when a file is made in it.
void make_private_folder(const std::filesystem::path& path);

/// An flock() held for life. The file stays when the lock is released, because removing it would
/// let two holders in.
class LockFile {
 public:
  /// nullopt if another process holds it.
  static Result<std::optional<LockFile>> try_lock(const std::filesystem::path& path);
  /// Waits; kNotReady past the deadline, naming the holder's pid.
  static Result<LockFile> lock(const std::filesystem::path& path, Deadline deadline);
  /// Whether another process holds it; false if there is no such file.
  static bool is_held(const std::filesystem::path& path);
  /// The pid written by the last holder; it may be long gone.
  static std::optional<int> last_holder(const std::filesystem::path& path);

 private:
  explicit LockFile(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

/// A listening Unix socket, mode 0600, close-on-exec. A socket file of a dead daemon is replaced,
/// because the caller holds the daemon's lock and nobody else listens there.
Result<UniqueFd> listen_at(const std::filesystem::path& path);

inline constexpr auto kConnectMax = std::chrono::seconds(5);

/// A connected, blocking, close-on-exec socket. kNotFound if nothing listens there (no file, or
/// refused). kNotReady past the deadline, if the queue of a hanging daemon is full.
Result<UniqueFd> connect_to(const std::filesystem::path& path,
                            Deadline deadline = std::chrono::steady_clock::now() + kConnectMax);

/// The way in which a starter learns that the daemon listens. It passes a pipe's write end to
/// `efimd serve --ready-fd N`; when its socket listens (before any model is loaded), the daemon
/// writes kReadyLine. If it cannot listen, it writes the failure's message and a newline. Then it
/// closes the pipe. End of file without a line means that the daemon died.
inline constexpr char kReadyLine[] = "ready\n";

/// Writes kReadyLine, or the error's message, and closes. Does nothing if there is no descriptor.
void report_ready(UniqueFd ready, const Result<void>& outcome);

}  // namespace efimd::service
