#include "daemon/files/file_identity.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

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

FileIdentity::FileIdentity(std::string_view uri, Links links) {
  const auto path = lsp::path_of(uri);
  if (!path) {
    paths_.push_back(without_last_slash(std::string(uri)));
    return;
  }
  paths_.push_back(without_last_slash(fs::path(*path).lexically_normal().generic_string()));
  if (links == Links::kAsWritten) return;
  // Before "..": what a link's parent is, only the file system knows. A file that is gone still
  // has its folders.
  std::error_code error;
  const fs::path real = fs::weakly_canonical(*path, error);
  if (!error && !real.empty()) paths_.push_back(without_last_slash(real.generic_string()));
}

bool FileIdentity::holds(const FileIdentity& file) const {
  return std::ranges::any_of(paths_, [&](const std::string& folder) {
    return std::ranges::any_of(file.paths_,
                               [&](const std::string& path) { return is_within(path, folder); });
  });
}

std::vector<std::string> uris_within(const std::string& uri, const std::vector<std::string>& uris,
                                     Links links) {
  const FileIdentity wanted(uri, links);
  std::vector<std::string> found;
  for (const std::string& each : uris)
    if (each == uri || wanted.holds(FileIdentity(each, links))) found.push_back(each);
  return found;
}

}  // namespace efimd::service
