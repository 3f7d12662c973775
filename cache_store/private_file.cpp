#include "cache_store/private_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace efimd::store {

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

bool is_in_place(const FileHandle& file, const std::filesystem::path& path) {
  struct stat ours {
  }, there{};
  return ::fstat(file.get(), &ours) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

tl::unexpected<Error> system_error(const std::filesystem::path& file, const char* what,
                                   const char* remedy) {
  return fail(Fault::kIo, file.string() + ": " + what + ": " + std::strerror(errno), remedy);
}

Result<void> make_private_folder(const std::filesystem::path& folder) {
  std::error_code error;
  constexpr const char* kRemedy = "check the folder's permissions, or set EFIMD_CACHE_DIR";
  std::filesystem::create_directories(folder.parent_path(), error);
  if (error)  // the folder's own reason would only be that this one is not there
    return fail(Fault::kIo, folder.parent_path().string() + ": cannot be made: " + error.message(),
                kRemedy);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return system_error(folder, "cannot be made", kRemedy);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return system_error(folder, "cannot be examined");
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return fail(Fault::kIo, folder.string() + ": is not a folder of this user",
                "move it away, or set EFIMD_CACHE_DIR");
  if ((info.st_mode & 077U) != 0 && ::chmod(folder.c_str(), 0700) != 0)
    return system_error(folder, "cannot be closed to other users");
  return {};
}

Result<FileHandle> open_private_file(const std::filesystem::path& file) {
  FileHandle handle(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!handle)
    return system_error(file, "cannot be opened", "check the permissions of the cache folder");
  struct stat info {};
  if (::fstat(handle.get(), &info) != 0) return system_error(file, "cannot be examined");
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    return fail(Fault::kIo, file.string() + ": is not a file of this user", "move it away");
  if ((info.st_mode & 077U) != 0 && ::fchmod(handle.get(), 0600) != 0)
    return system_error(file, "cannot be closed to other users");
  return handle;
}

Result<bool> try_lock(const FileHandle& file, const std::filesystem::path& name) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno == EINTR) continue;
    if (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS)
      return fail(Fault::kUnsupported, name.string() + ": this file system has no locks");
    return system_error(name, "cannot be locked");
  }
  return true;
}

}  // namespace efimd::store
