#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/digest.h"
#include "base/error.h"
#include "cache_store/private_file.h"

namespace efimd::store {

/// Whose pages an arena holds: one model, one form of KV, one size.
struct ArenaKey {
  Digest model;
  std::string model_name;  ///< for people; no part of the identity
  std::string kv_type;     ///< names element type and layout of a page's bytes
  std::size_t page_bytes = 0;
};

/// A file of fixed slots, one page each, as they are in memory. Loading is the fast path, so
/// nothing is compressed.
///
///   byte 0      magic "efimdkv1"
///        8      u64 slot bytes: page bytes rounded up to 4096
///       16      Digest nonce: the same as the database's row of this arena, else the file is
///       another
///               generation's and is started over
///       32      u64 XXH3 of bytes 0-31
///     4096      slot 0, slot 1, ...
///
/// Numbers are this machine's; a file from elsewhere is started over.
///
/// Thread: read() from any, at the same time as writing another slot; the rest from one.
/// Fails with kIo, never by a signal: the file is not mapped.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 4096;
  static constexpr std::uint32_t kSlotsMax = 1U << 30U;  ///< bounds what a damaged row can ask for

  /// Opens the file, or makes it anew if it is absent, empty or not of this nonce. `fresh` then
  /// says that every row about it is void.
  static Result<Arena> open(const std::filesystem::path& file, std::size_t page_bytes,
                            Digest nonce);

  bool fresh() const { return fresh_; }
  std::size_t page_bytes() const { return page_bytes_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  const std::filesystem::path& file() const { return path_; }
  bool is_in_place() const { return store::is_in_place(handle_, path_); }

  /// False if the file system has no room for it, or the user's quota has none.
  Result<bool> write(std::uint32_t slot, std::span<const std::byte> page);
  Result<void> sync();
  /// Fills `page`. kIo also if the slot ends past the file's end.
  Result<void> read(std::uint32_t slot, std::span<std::byte> page) const;

  /// Announces that the slot will be read soon: the system may begin now. Returns at once; thread
  /// as read().
  void will_read(std::uint32_t slot) const;

  /// Overwrites the slots with zeros where there is anything in them, syncs once, and gives their
  /// blocks back if the file system can.
  Result<void> erase(std::span<const std::uint32_t> slots);
  /// Gives the slot's blocks back without overwriting; they read as zeros then. False if the file system
  /// cannot do that inside a file.
  bool release(std::uint32_t slot);
  /// Ends the file behind its first `slots`. A refusal costs disk space until they are reused.
  void cut(std::uint32_t slots);
  /// Whether the slot has blocks on the disk.
  bool holds_data(std::uint32_t slot) const;
  /// The number of slots in the file, the last perhaps in part.
  std::uint32_t slots() const;
  /// Bytes that the file takes on the disk.
  std::size_t disk_bytes() const;

 private:
  Arena(std::filesystem::path path, std::size_t page_bytes);
  Result<void> start(Digest nonce);
  std::int64_t offset(std::uint32_t slot) const;
  Result<void> overwrite(std::uint32_t slot);

  std::filesystem::path path_;
  FileHandle handle_;
  std::size_t page_bytes_;
  std::size_t slot_bytes_;
  bool fresh_ = false;
};

}  // namespace efimd::store
