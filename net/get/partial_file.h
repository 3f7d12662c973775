#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "net/get/content_hash.h"

namespace efimd::get {

/// A file that is not whole yet: NAME.incomplete beside NAME, as huggingface_hub names it. What is
/// in it is kept over the death of the process; it gets its name only when it is checked.
///
/// Owns: the descriptor. Thread: one. The caller holds the file's lock.
class PartialFile {
 public:
  struct Wish {
    std::filesystem::path file;  ///< when it is whole
    std::uint64_t bytes = 0;     ///< 0: not known
    std::string hash;            ///< 64 or 40 hexadecimal digits (ContentHash); empty: not known
  };
  static std::filesystem::path path_of(const std::filesystem::path& file) {
    return file.string() + ".incomplete";
  }
  /// Takes over what is there, and hashes it. What is longer than the whole is dropped. kStopped.
  static Result<PartialFile> open(const Wish& wish);
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  /// kIo says that the disk is full, or whatever else the system says.
  Result<void> append(std::span<const char> piece);
  /// From nothing; kIo.
  Result<void> restart();
  /// The size of the whole became known.
  void expect(std::uint64_t bytes) { wish_.bytes = bytes; }
  std::uint64_t expected() const { return wish_.bytes; }
  /// Whether the content is what its hash says, if one is known. Ends the hash: after it only
  /// restart(), finish() and remove() are of use.
  bool content_is_right();
  /// On the disk, and under its name.
  Result<void> finish();
  void remove();

 private:
  PartialFile(Wish wish, std::filesystem::path path, int fd);
  Result<void> hash_again();
  Error said(int code) const;
  Wish wish_;
  std::filesystem::path path_;
  int fd_;
  std::uint64_t size_ = 0;
  std::optional<ContentHash> hash_;
};

/// Held while a blob is written, by huggingface_hub too: flock() of a file of its own.
class BlobLock {
 public:
  /// nullopt: another process has it. kIo.
  static Result<std::optional<BlobLock>> try_take(const std::filesystem::path& file);
  BlobLock(BlobLock&& other) noexcept;
  BlobLock& operator=(BlobLock&&) = delete;
  ~BlobLock();

 private:
  explicit BlobLock(int fd) : fd_(fd) {}
  int fd_;
};

/// kIo, with what is missing, if the folder's disk has no room for `bytes` more.
Result<void> check_room(const std::filesystem::path& folder, std::uint64_t bytes);
/// Bytes that this user may write there; nullopt if the system does not say.
std::optional<std::uint64_t> free_bytes(const std::filesystem::path& folder);
/// A message of the operating system about a path.
Error system_error(const std::filesystem::path& path, int code);

}  // namespace efimd::get
