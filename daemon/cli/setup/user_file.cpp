#include "daemon/cli/setup/user_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/utf8.h"
#include "daemon/config/local_socket.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

tl::unexpected<Error> unfit(const fs::path& path, const char* why) {
  return fail(Fault::kUnsupported, path.string() + " " + why);
}

tl::unexpected<Error> said(const fs::path& path) {
  return fail(Fault::kIo, path.string() + ": " + std::strerror(errno));
}

Result<void> check_unchanged(const UserFile& file) {
  const auto now = read_user_file(file.path);
  if (!now) return tl::unexpected(now.error());
  if (now->text == file.text && now->real == file.real) return {};
  return fail(Fault::kIo, file.path.string() + " was changed in the meantime",
              "run efimd setup again");
}

bool write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

Result<UserFile> read_user_file(const fs::path& path) {
  UserFile file{path, path, std::nullopt};
  std::error_code error;
  if (fs::is_symlink(path, error)) {
    file.real = fs::canonical(path, error);
    if (error) return unfit(path, "is a link to nothing");
  }
  struct stat facts {};
  if (::stat(file.real.c_str(), &facts) != 0) {
    if (errno == ENOENT) return file;
    return said(path);
  }
  if (!S_ISREG(facts.st_mode)) return unfit(path, "is no ordinary file");
  if (facts.st_uid != ::geteuid()) return unfit(path, "belongs to another user");
  if (facts.st_nlink > 1) return unfit(path, "has several names (hard links)");
  if ((facts.st_mode & S_IWUSR) == 0) return unfit(path, "may not be written");
  if (static_cast<std::size_t>(facts.st_size) > kUserFileBytesMax)
    return unfit(path, "is too large");
  std::ifstream stream(file.real, std::ios::binary);
  std::ostringstream text;
  if (!stream || (facts.st_size > 0 && !(text << stream.rdbuf())))
    return unfit(path, "cannot be read");
  file.text = text.str();
  if (file.text->find('\0') != std::string::npos ||
      utf8::valid_prefix(*file.text) != file.text->size())
    return unfit(path, "is no text in UTF-8");
  return file;
}

Result<void> write_user_file(const UserFile& file, const std::string& text) {
  if (auto same = check_unchanged(file); !same) return same;
  std::error_code error;
  fs::create_directories(file.real.parent_path(), error);
  struct stat facts {};
  const bool is_there = ::stat(file.real.c_str(), &facts) == 0;
  std::string next = file.real.string() + ".efimd-XXXXXX";
  const UniqueFd fd(::mkstemp(next.data()));
  if (!fd) return said(file.real.parent_path());
  // A new one gets what the umask leaves, as from an editor.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const bool good = ::fchmod(fd.get(), is_there ? facts.st_mode & 07777 : 0666 & ~mask) == 0 &&
                    write_all(fd.get(), text) && ::fsync(fd.get()) == 0 &&
                    ::rename(next.c_str(), file.real.c_str()) == 0;
  if (good) return {};
  const auto why = said(file.path);
  ::unlink(next.c_str());
  return why;
}

Result<void> remove_user_file(const UserFile& file, int folders) {
  if (auto same = check_unchanged(file); !same) return same;
  std::error_code error;
  if (!fs::remove(file.path, error))
    return fail(Fault::kIo, file.path.string() + ": " + error.message());
  fs::path folder = file.path.parent_path();
  for (; folders > 0 && fs::is_empty(folder, error) && !error; --folders) {
    if (!fs::remove(folder, error)) break;
    folder = folder.parent_path();
  }
  return {};
}

int folders_missing(const fs::path& path) {
  int missing = 0;
  std::error_code error;
  for (fs::path folder = path.parent_path();
       folder.has_relative_path() && !fs::exists(folder, error); folder = folder.parent_path())
    ++missing;
  return missing;
}

}  // namespace efimd::service
