#include "daemon/files/file_identity.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lsp/uri.h"

namespace efimd::service {

namespace {

namespace fs = std::filesystem;

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool is_within(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder == "/" || path[folder.size()] == '/';
}

}  // namespace

std::string RealPaths::of(const std::string& path) {
  const fs::path whole(path);
  const fs::path name = whole.filename();
  std::error_code error;
  // What ".." is behind a link, and where a link leads, only the whole path says.
  if (name.empty() || name == "." || name == ".." || fs::is_symlink(whole, error)) {
    const fs::path real = fs::weakly_canonical(whole, error);
    return error ? std::string() : real.generic_string();
  }
  const auto [folder, fresh] = folders_.try_emplace(whole.parent_path().string());
  if (fresh) {
    const fs::path real = fs::weakly_canonical(whole.parent_path(), error);
    if (!error) folder->second = real.generic_string();
  }
  if (folder->second.empty()) return {};
  return (fs::path(folder->second) / name).generic_string();
}

FileIdentity::FileIdentity(std::string_view uri, RealPaths* real_paths) {
  const auto path = lsp::path_of(uri);
  if (!path) {
    paths_.push_back(without_last_slash(std::string(uri)));
    return;
  }
  paths_.push_back(without_last_slash(fs::path(*path).lexically_normal().generic_string()));
  if (real_paths == nullptr) return;
  // Before "..": what a link's parent is, only the file system knows. A file that is gone still
  // has its folders.
  if (std::string real = real_paths->of(*path); !real.empty())
    paths_.push_back(without_last_slash(std::move(real)));
}

bool FileIdentity::holds(const FileIdentity& file) const {
  return std::ranges::any_of(paths_, [&](const std::string& folder) {
    return std::ranges::any_of(file.paths_,
                               [&](const std::string& path) { return is_within(path, folder); });
  });
}

std::vector<std::string> uris_within(const std::string& uri, const std::vector<std::string>& uris,
                                     Links links) {
  RealPaths known;
  RealPaths* const real_paths = links == Links::kResolved ? &known : nullptr;
  const FileIdentity wanted(uri, real_paths);
  std::vector<std::string> found;
  for (const std::string& each : uris)
    if (each == uri || wanted.holds(FileIdentity(each, real_paths))) found.push_back(each);
  return found;
}

}  // namespace efimd::service
