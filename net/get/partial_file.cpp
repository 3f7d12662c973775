#include "net/get/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "daemon/config/amounts.h"
#include "net/get/transport.h"

namespace efimd::get {

namespace fs = std::filesystem;

namespace {

/// Other programs on the same disk want to go on, too.
constexpr std::uint64_t kLeftFree = std::uint64_t{64} << 20;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::string bytes_said(std::uint64_t bytes) {
  return service::bytes_text(static_cast<double>(bytes));
}

}  // namespace

Error system_error(const fs::path& path, int code) {
  const std::string where = path.string() + ": ";
  if (code == ENOSPC || code == EDQUOT)
    return {Fault::kIo, where + "the disk is full", "make room, then run the command again"};
  if (code == EFBIG)
    return {Fault::kIo, where + "is larger than files may become here",
            "raise the limit (ulimit -f), or use a file system for large files"};
  if (code == EACCES || code == EROFS || code == EPERM)
    return {Fault::kIo, where + std::strerror(code),
            "check the folder's permissions, or set HF_HOME to another one"};
  return {Fault::kIo, where + std::strerror(code), "check the disk"};
}

Result<PartialFile> PartialFile::open(const Wish& wish) {
  const fs::path path = path_of(wish.file);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return tl::unexpected(system_error(path, errno));
  PartialFile file(wish, path, fd);
  const off_t size = ::lseek(fd, 0, SEEK_END);
  file.size_ = size > 0 ? static_cast<std::uint64_t>(size) : 0;
  const bool too_long = wish.bytes > 0 && file.size_ > wish.bytes;
  if (auto done = too_long ? file.restart() : file.hash_again(); !done)
    return tl::unexpected(done.error());
  return file;
}

PartialFile::PartialFile(Wish wish, fs::path path, int fd)
    : wish_(std::move(wish)), path_(std::move(path)), fd_(fd) {}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : wish_(std::move(other.wish_)),
      path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      hash_(std::move(other.hash_)) {}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
}

Error PartialFile::said(int code) const { return system_error(path_, code); }

Result<void> PartialFile::hash_again() {
  hash_.reset();
  if (wish_.hash.empty()) return {};
  const bool is_git = wish_.hash.size() == 40;
  hash_.emplace(is_git ? ContentHash::Kind::kGitBlob : ContentHash::Kind::kSha256, wish_.bytes);
  std::vector<char> piece(kPieceBytes);
  for (std::uint64_t at = 0; at < size_;) {
    if (interrupted) return fail(Fault::kStopped, "interrupted", "");
    const ssize_t got = ::pread(fd_, piece.data(), piece.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return tl::unexpected(said(got < 0 ? errno : EIO));
    hash_->add({piece.data(), static_cast<std::size_t>(got)});
    at += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> PartialFile::append(std::span<const char> piece) {
  if (hash_) hash_->add(piece);
  while (!piece.empty()) {
    const ssize_t put = ::pwrite(fd_, piece.data(), piece.size(), static_cast<off_t>(size_));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return tl::unexpected(said(put < 0 ? errno : ENOSPC));
    size_ += static_cast<std::uint64_t>(put);
    piece = piece.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> PartialFile::restart() {
  if (::ftruncate(fd_, 0) != 0) return tl::unexpected(said(errno));
  size_ = 0;
  return hash_again();
}

bool PartialFile::content_is_right() { return !hash_ || hash_->finish() == wish_.hash; }

Result<void> PartialFile::finish() {
  // Some file systems notice only now that they are full.
  if (::fsync(fd_) != 0) return tl::unexpected(said(errno));
  if (::rename(path_.c_str(), wish_.file.c_str()) != 0) return tl::unexpected(said(errno));
  const int folder = ::open(wish_.file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);  // best effort: what is lost is only the name
    ::close(folder);
  }
  return {};
}

void PartialFile::remove() { ::unlink(path_.c_str()); }

Result<std::optional<BlobLock>> BlobLock::try_take(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return tl::unexpected(system_error(file, errno));
  BlobLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return std::optional(std::move(lock));
  if (errno == EWOULDBLOCK) return std::optional<BlobLock>();
  // A file system without locks: two at once would only load twice.
  if (errno == ENOLCK || errno == ENOTSUP) return std::optional(std::move(lock));
  return tl::unexpected(system_error(file, errno));
}

BlobLock::BlobLock(BlobLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

BlobLock::~BlobLock() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<std::uint64_t> free_bytes(const fs::path& folder) {
  struct statvfs disk {};
  fs::path there = folder;
  std::error_code error;
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (::statvfs(there.c_str(), &disk) != 0) return std::nullopt;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

Result<void> check_room(const fs::path& folder, std::uint64_t bytes) {
  const auto room = free_bytes(folder);
  if (!room || *room >= bytes + kLeftFree) return {};
  return fail(Fault::kIo,
              fmt::format("{}: the disk has {} free, and {} are to be loaded", folder.string(),
                          bytes_said(*room), bytes_said(bytes)),
              "make room, or set HF_HOME to a folder on another disk");
}

}  // namespace efimd::get
