#pragma once

#include <filesystem>
#include <utility>

#include "base/error.h"

namespace efimd::store {

/// An open file; closes with its owner.
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

/// Makes `folder` and its parents, or checks one that is there: it must be a real folder of this
/// user. Removes the permissions of group and others (ST-2).
Result<void> make_private_folder(const std::filesystem::path& folder);

/// Opens `file` for reading and writing; makes it as 0600 if it is not there; never follows a link.
Result<FileHandle> open_private_file(const std::filesystem::path& file);

/// Locks the file for this process. False if another process has it. kUnsupported on a file system
/// without locks.
Result<bool> try_lock(const FileHandle& file, const std::filesystem::path& name);

/// "what: reason of errno", kIo.
tl::unexpected<Error> system_error(const std::filesystem::path& file, const char* what,
                                   const char* remedy = "");

}  // namespace efimd::store
