#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace efimd::test {

/// Mounts over `folder` a file system that never answers, for this thread and those that it starts, until
/// the destructor. Where that is not allowed it mounts nothing.
class StalledFolder {
 public:
  explicit StalledFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
    if (!enter_namespace()) return;
    fuse_ = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options = "fd=" + std::to_string(fuse_) +
                                ",rootmode=40000,user_id=" + std::to_string(::getuid()) +
                                ",group_id=" + std::to_string(::getgid());
    mounted_ =
        fuse_ >= 0 && ::mount("efimd-test", folder_.c_str(), "fuse", 0, options.c_str()) == 0;
  }
  ~StalledFolder() {
    if (fuse_ >= 0) ::close(fuse_);  // ends every wait
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  StalledFolder(const StalledFolder&) = delete;
  StalledFolder& operator=(const StalledFolder&) = delete;

  /// Mounts of this thread are its own from now on. To be called before threads that shall see them.
  static bool enter_namespace() {
    static const bool done = ::unshare(CLONE_NEWNS) == 0 &&
                             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    return done;
  }
  bool is_mounted() const { return mounted_; }

 private:
  std::filesystem::path folder_;
  int fuse_ = -1;
  bool mounted_ = false;
};

}  // namespace efimd::test
