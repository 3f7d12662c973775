#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "daemon/cli/commands/doctor.h"
#include "daemon/config/local_socket.h"

// The folders that `efimd doctor` looks at.

namespace efimd::service {

namespace fs = std::filesystem;
using Level = Finding::Level;

namespace {

/// Whether a file of this user's could be made and written there; true if the system does not say.
bool has_room(const fs::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0 || info.f_blocks == 0) return true;
  const bool root = ::geteuid() == 0;  // some is kept for root
  const bool has_blocks = (root ? info.f_bfree : info.f_bavail) > 0;
  const bool counts_files = info.f_files > 0;
  return has_blocks && (!counts_files || (root ? info.f_ffree : info.f_favail) > 0);
}

Finding full(const char* subject, const fs::path& folder, Level level) {
  return {level, subject, folder.string() + ": no space is left on its disk",
          "make room there, or set another folder (docs/configuration.md)"};
}

/// A folder that is not there: whether the nearest one above it would take it.
Finding examine_missing(const char* subject, const fs::path& folder, const fs::path& shown,
                        Level if_full) {
  fs::path there = folder.parent_path();
  struct stat info {};
  while (there.has_relative_path() && ::stat(there.c_str(), &info) != 0 && errno == ENOENT)
    there = there.parent_path();
  if (::access(there.c_str(), W_OK | X_OK) != 0)
    return {Level::kWrong, subject,
            fmt::format("{} cannot be made: {}: {}", folder.string(), there.string(),
                        std::strerror(errno)),
            "check its permissions, or set another folder (docs/configuration.md)"};
  if (!has_room(there)) return full(subject, there, if_full);
  return {Level::kGood, subject, shown.string() + " (not made yet)", ""};
}

/// The daemon makes such folders for its user alone, but takes those that are there as they are. Who may
/// write there may put another choice of a model, or another token, in the place of the user's.
Finding examine_rights(const char* subject, const fs::path& path, const struct stat& info) {
  const std::string remedy = "chmod 700 " + path.string();
  if (info.st_uid != ::geteuid())
    return {Level::kWrong, subject, path.string() + " belongs to another user",
            "set another folder (docs/configuration.md)"};
  if ((info.st_mode & S_IWOTH) != 0)
    return {Level::kWrong, subject, path.string() + " can be written by other users", remedy};
  if ((info.st_mode & 077U) != 0)
    return {Level::kNote, subject, path.string() + " is open to other users", remedy};
  return {Level::kGood, subject, path.string(), ""};
}

/// A folder that need not exist yet. The daemon lives without what it would write there.
Finding examine_folder(const char* subject, const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return examine_missing(subject, path, path, Level::kNote);
    return {Level::kWrong, subject, path.string() + ": " + std::strerror(errno),
            "check its permissions"};
  }
  if (!S_ISDIR(info.st_mode))
    return {Level::kWrong, subject, path.string() + " is not a folder", "move it away"};
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    return {Level::kWrong, subject, path.string() + " cannot be written", "check its permissions"};
  if (!has_room(path)) return full(subject, path, Level::kNote);
  return examine_rights(subject, path, info);
}

}  // namespace

void examine_paths(const Paths& paths, std::vector<Finding>& findings) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(paths.runtime_dir, error))) {
    findings.push_back(examine_missing("socket", paths.runtime_dir, paths.socket(), Level::kWrong));
  } else if (const auto folder = ensure_private_directory(paths.runtime_dir); !folder) {
    findings.push_back({Level::kWrong, "socket", folder.error().what, folder.error().remedy});
  } else if (!has_room(paths.runtime_dir)) {
    findings.push_back(full("socket", paths.runtime_dir, Level::kWrong));
  } else {
    findings.push_back({Level::kGood, "socket", paths.socket().string(), ""});
  }
  for (const std::string& note : paths.notes)
    findings.push_back({Level::kNote, "socket", note, ""});
  findings.push_back(examine_folder("cache", paths.cache_dir));
  findings.push_back(examine_folder("log", paths.state_dir));
}

}  // namespace efimd::service
