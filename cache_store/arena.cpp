#include "cache_store/arena.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace efimd::store {

namespace {

constexpr std::array<char, 8> kMagic = {'e', 'f', 'i', 'm', 'd', 'k', 'v', '1'};

struct Header {
  std::array<char, 8> magic;
  std::uint64_t slot_bytes;
  Digest nonce;
  std::uint64_t check;
};
static_assert(sizeof(Header) == 40);

Header header_of(std::size_t slot_bytes, Digest nonce) {
  Header header{kMagic, slot_bytes, nonce, 0};
  header.check = XXH3_64bits(&header, offsetof(Header, check));
  return header;
}

/// All of `bytes` at `offset`, or the errno.
bool write_all(int fd, std::span<const std::byte> bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
  return true;
}

bool read_all(int fd, std::span<std::byte> bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = ENODATA;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
  return true;
}

}  // namespace

Arena::Arena(std::filesystem::path path, std::size_t page_bytes)
    : path_(std::move(path)),
      page_bytes_(page_bytes),
      slot_bytes_((page_bytes + kAlignment - 1) / kAlignment * kAlignment) {}

Result<Arena> Arena::open(const std::filesystem::path& file, std::size_t page_bytes, Digest nonce) {
  Arena arena(file, page_bytes);
  Result<FileHandle> handle = open_private_file(file);
  if (!handle) return tl::unexpected(handle.error());
  arena.handle_ = std::move(*handle);
  Header found{};
  const Header wanted = header_of(arena.slot_bytes_, nonce);
  if (read_all(arena.handle_.get(), std::as_writable_bytes(std::span(&found, 1)), 0) &&
      std::memcmp(&found, &wanted, sizeof wanted) == 0)
    return arena;
  if (const Result<void> started = arena.start(nonce); !started)
    return tl::unexpected(started.error());
  return arena;
}

Result<void> Arena::start(Digest nonce) {
  fresh_ = true;
  if (::ftruncate(handle_.get(), 0) != 0) return system_error(path_, "cannot be emptied");
  const Header header = header_of(slot_bytes_, nonce);
  if (!write_all(handle_.get(), std::as_bytes(std::span(&header, 1)), 0) ||
      ::ftruncate(handle_.get(), kAlignment) != 0)
    return system_error(path_, "cannot be written");
  return {};
}

std::int64_t Arena::offset(std::uint32_t slot) const {
  return static_cast<std::int64_t>(kAlignment + std::size_t{slot} * slot_bytes_);
}

Result<bool> Arena::write(std::uint32_t slot, std::span<const std::byte> page) {
  if (write_all(handle_.get(), page, offset(slot))) return true;
  if (errno == ENOSPC || errno == EDQUOT) return false;
  return system_error(path_, "cannot be written");
}

Result<void> Arena::sync() {
#ifdef __linux__
  const int synced = ::fdatasync(handle_.get());
#else
  const int synced = ::fsync(handle_.get());
#endif
  if (synced == 0) return {};
  return system_error(path_, "cannot be synced");
}

Result<void> Arena::read(std::uint32_t slot, std::span<std::byte> page) const {
  if (read_all(handle_.get(), page, offset(slot))) return {};
  return system_error(path_, "cannot be read");
}

void Arena::will_read([[maybe_unused]] std::uint32_t slot) const {
#ifdef POSIX_FADV_WILLNEED
  ::posix_fadvise(handle_.get(), offset(slot), static_cast<off_t>(slot_bytes_),
                  POSIX_FADV_WILLNEED);
#endif
}

bool Arena::holds_data(std::uint32_t slot) const {
#ifdef SEEK_DATA
  const off_t data = ::lseek(handle_.get(), offset(slot), SEEK_DATA);
  return data < 0 ? errno != ENXIO : data < offset(slot + 1);
#else
  return true;
#endif
}

Result<void> Arena::overwrite(std::uint32_t slot) {
  static constexpr std::array<std::byte, 1U << 16U> kZeros{};
  for (std::size_t at = 0; at < slot_bytes_; at += kZeros.size()) {
    const auto piece = std::span(kZeros).first(std::min(kZeros.size(), slot_bytes_ - at));
    if (!write_all(handle_.get(), piece, offset(slot) + static_cast<std::int64_t>(at)))
      return system_error(path_, "cannot be overwritten");
  }
  return {};
}

Result<void> Arena::erase(std::span<const std::uint32_t> slots) {
  std::vector<std::uint32_t> overwritten;
  for (const std::uint32_t slot : slots) {
    if (!holds_data(slot)) continue;
    if (Result<void> done = overwrite(slot); !done) return done;
    overwritten.push_back(slot);
  }
  if (overwritten.empty()) return {};
  // Blocks that were given back read as zeros, but may still be on the medium: they go after the sync.
  if (Result<void> synced = sync(); !synced) return synced;
  std::ranges::sort(overwritten, std::greater<>());  // each may be the file's last
  for (const std::uint32_t slot : overwritten) release(slot);
  return {};
}

bool Arena::release(std::uint32_t slot) {
  if (slot + 1 >= slots()) {
    cut(slot);
    return true;
  }
#ifdef FALLOC_FL_PUNCH_HOLE
  return ::fallocate(handle_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset(slot),
                     static_cast<off_t>(slot_bytes_)) == 0;
#else
  return false;
#endif
}

void Arena::cut(std::uint32_t slots) {
  static_cast<void>(::ftruncate(handle_.get(), offset(slots)) == 0);
}

std::uint32_t Arena::slots() const {
  struct stat info {};
  if (::fstat(handle_.get(), &info) != 0 || info.st_size <= offset(0)) return 0;
  const auto bytes = static_cast<std::size_t>(info.st_size - offset(0));
  return static_cast<std::uint32_t>(
      std::min<std::size_t>((bytes + slot_bytes_ - 1) / slot_bytes_, kSlotsMax));
}

std::size_t Arena::disk_bytes() const {
  struct stat info {};
  if (::fstat(handle_.get(), &info) != 0) return 0;
  return static_cast<std::size_t>(info.st_blocks) * 512;
}

}  // namespace efimd::store
