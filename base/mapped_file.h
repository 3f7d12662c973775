#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "base/error.h"

namespace efimd {

/// A whole file, mapped read-only and private.
///
/// Owns: the mapping; spans into bytes() live as long as this object. A file that another program
/// shortens under the mapping raises SIGBUS on access: size changes are the caller's to check.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace efimd
