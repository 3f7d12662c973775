#pragma once

#include <filesystem>
#include <utility>

#include "base/error.h"

namespace efimd::store {

/// An open file that is closed at the end of its owner.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileHandle();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Whether `path` names the file that is open as `file`: false once it was removed or replaced.
bool is_in_place(const FileHandle& file, const std::filesystem::path& path);

/// Makes `folder` with all above it, or checks one that is there: a real folder of this user; group
/// and other bits are taken away (ST-2).
Result<void> make_private_folder(const std::filesystem::path& folder);

/// Opens `file` for reading and writing, made as 0600 when it is not there; never through a link.
Result<FileHandle> open_private_file(const std::filesystem::path& file);

/// Locks the file for this process. False: another process has it. A file system without locks
/// gives kUnsupported.
Result<bool> try_lock(const FileHandle& file, const std::filesystem::path& name);

/// "what: reason of errno", kIo.
tl::unexpected<Error> system_error(const std::filesystem::path& file, const char* what,
                                   const char* remedy = "");

}  // namespace efimd::store
