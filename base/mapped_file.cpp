#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/limits.h"

namespace efimd {

namespace {

/// Closes a file descriptor at the end of a scope, unless it was released.
struct Descriptor {
  int value;
  int release() { return std::exchange(value, -1); }
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // A pipe without a writer would hold a blocking open for ever.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) {
    const Fault fault = errno == ENOENT ? Fault::kNotFound : Fault::kIo;
    return fail(fault, path.string() + ": cannot be opened: " + std::strerror(errno),
                "check the path and its permissions");
  }
  struct stat info {};
  if (::fstat(file.value, &info) != 0)
    return fail(Fault::kIo, path.string() + ": " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(Fault::kBadInput, path.string() + ": not a regular file", "name a file");
  if (info.st_size == 0) return MappedFile({}, file.release(), info.st_mtim);
  const auto size = static_cast<std::size_t>(info.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (start == MAP_FAILED)
    return fail(Fault::kNoMemory, path.string() + ": cannot be mapped: " + std::strerror(errno),
                remedy_for_no_memory());
  return MappedFile({static_cast<const std::byte*>(start), size}, file.release(), info.st_mtim);
}

MappedFile::MappedFile(std::span<const std::byte> bytes, int descriptor, timespec modified)
    : bytes_(bytes),
      descriptor_(descriptor),
      modified_(modified),
      guard_(bytes.empty() ? nullptr : std::make_unique<MappingGuard>(bytes)) {}

bool MappedFile::intact() const {
  struct stat info {};
  return (guard_ == nullptr || !guard_->was_cut()) && ::fstat(descriptor_, &info) == 0 &&
         static_cast<std::size_t>(info.st_size) == bytes_.size() &&
         info.st_mtim.tv_sec == modified_.tv_sec && info.st_mtim.tv_nsec == modified_.tv_nsec;
}

std::string MappedFile::stamp() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return {};
  std::string stamp = std::to_string(info.st_dev);
  for (const auto number :
       {static_cast<std::int64_t>(info.st_ino), static_cast<std::int64_t>(info.st_size),
        static_cast<std::int64_t>(info.st_mtim.tv_sec),
        static_cast<std::int64_t>(info.st_mtim.tv_nsec),
        static_cast<std::int64_t>(info.st_ctim.tv_sec),
        static_cast<std::int64_t>(info.st_ctim.tv_nsec)})
    stamp += " " + std::to_string(number);
  return stamp;
}

void MappedFile::give_back(std::span<const std::byte> bytes) const {
  // Only of a private mapping that nobody writes to: elsewhere this would lose what was written.
  if (bytes.data() < bytes_.data() || bytes.data() + bytes.size() > bytes_.data() + bytes_.size())
    return;
  const auto page = static_cast<std::size_t>(std::max(4096L, ::sysconf(_SC_PAGESIZE)));
  const auto begin = static_cast<std::size_t>(bytes.data() - bytes_.data());
  const std::size_t first = (begin + page - 1) / page * page;
  const std::size_t last = (begin + bytes.size()) / page * page;
  if (first >= last) return;
  // A refusal only costs memory.
  ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  guard_.reset();
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace efimd
