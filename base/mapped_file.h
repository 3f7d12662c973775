#pragma once

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/mapping_guard.h"

namespace efimd {

/// A whole file, mapped read-only and private.
///
/// Owns: the mapping and an open descriptor; spans into bytes() live as long as this object. If
/// another program writes into the file, bytes() change; if it cuts the end off, zeros are read
/// there. intact() says so. A new file under the same name does not change the mapped one.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})),
        descriptor_(std::exchange(other.descriptor_, -1)),
        modified_(other.modified_),
        guard_(std::move(other.guard_)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(modified_, other.modified_);
    std::swap(guard_, other.guard_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Whether the file is unchanged since it was opened, by its size and time. Costs a system call.
  bool intact() const;
  /// The file's place, size and times of change, of which programs cannot set the last. Another
  /// content has another stamp. Costs a system call; empty if that fails.
  std::string stamp() const;
  /// Takes whole pages of `bytes`, which lie in bytes(), out of this process's memory. If they are
  /// read again, they come back from the system's cache or the file. Any thread.
  void give_back(std::span<const std::byte> bytes) const;

 private:
  MappedFile(std::span<const std::byte> bytes, int descriptor, timespec modified);
  std::span<const std::byte> bytes_;
  int descriptor_;
  timespec modified_;
  std::unique_ptr<MappingGuard> guard_;  ///< null for an empty file
};

}  // namespace efimd
