#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace efimd {

namespace {

/// Closes a file descriptor at the end of a scope.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // A pipe without a writer would hold a blocking open for ever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
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
  if (info.st_size == 0) return MappedFile({});
  const auto size = static_cast<std::size_t>(info.st_size);
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (start == MAP_FAILED)
    return fail(Fault::kNoMemory, path.string() + ": cannot be mapped: " + std::strerror(errno));
  return MappedFile({static_cast<const std::byte*>(start), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace efimd
