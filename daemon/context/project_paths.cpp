#include "daemon/context/project_paths.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace efimd::context {

namespace {

/// Whether the path's last parts are those of `end`, which is not empty.
bool ends_with_parts(std::string_view path, std::string_view end) {
  if (!path.ends_with(end)) return false;
  return path.size() == end.size() || path[path.size() - end.size() - 1] == '/';
}

bool is_below(std::string_view folder, std::string_view scope) {
  return folder.starts_with(scope) &&
         (folder.size() == scope.size() || folder[scope.size()] == '/');
}

/// What the pattern's "*" stands for in `path`; empty without one.
std::optional<std::string_view> matched(std::string_view pattern, std::string_view path) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return path == pattern ? std::optional(std::string_view()) : std::nullopt;
  const std::string_view back = pattern.substr(star + 1);
  if (path.size() + 1 < pattern.size() || !path.starts_with(pattern.substr(0, star)) ||
      !path.ends_with(back))
    return std::nullopt;
  return path.substr(star, path.size() - star - back.size());
}

/// A whole path first, then what has the longest front before its "*".
std::size_t exactness(const Alias& alias) { return alias.pattern.find('*'); }

}  // namespace

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string joined(std::string_view folder, std::string_view path) {
  std::string out(folder);
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      out.append("/").append(part);
      continue;
    }
    if (out.empty()) return {};
    out.resize(folder_of(out).size());
  }
  return out;
}

ProjectPaths::ProjectPaths(std::string root, std::vector<std::string> files,
                           std::vector<Package> packages, std::vector<Alias> aliases)
    : root_(std::move(root)),
      files_(std::move(files)),
      packages_(std::move(packages)),
      aliases_(std::move(aliases)) {
  std::ranges::sort(files_);
  std::ranges::stable_sort(aliases_, [](const Alias& a, const Alias& b) {
    return std::tuple(b.scope.size(), exactness(b)) < std::tuple(a.scope.size(), exactness(a));
  });
  // Below a folder's files there may be those of other folders, so it may come again.
  std::unordered_set<std::string_view> known;
  for (std::size_t at = 0; at < files_.size(); ++at) {
    by_name_[name_of(files_[at])].push_back(at);
    const std::string_view folder = folder_of(files_[at]);
    if (known.insert(folder).second) folders_by_name_[name_of(folder)].push_back(folder);
  }
}

bool ProjectPaths::has(std::string_view path) const {
  return std::ranges::binary_search(files_, path, std::less<>());
}

std::vector<std::string_view> ProjectPaths::ending_with(std::string_view end) const {
  std::vector<std::string_view> found;
  const auto same = by_name_.find(name_of(end));
  if (end.empty() || same == by_name_.end()) return found;
  for (const std::size_t at : same->second)
    if (ends_with_parts(files_[at], end)) found.push_back(files_[at]);
  return found;
}

std::vector<std::string_view> ProjectPaths::in_folder(std::string_view folder) const {
  std::vector<std::string_view> found;
  const std::string front = std::string(folder) + "/";
  for (auto at = std::ranges::lower_bound(files_, front);
       at != files_.end() && at->starts_with(front); ++at)
    if (folder_of(*at) == folder) found.push_back(*at);
  return found;
}

std::vector<std::string_view> ProjectPaths::folders_ending_with(std::string_view end) const {
  std::vector<std::string_view> found;
  const auto same = folders_by_name_.find(name_of(end));
  if (end.empty() || same == folders_by_name_.end()) return found;
  for (const std::string_view folder : same->second)
    if (ends_with_parts(folder, end)) found.push_back(folder);
  return found;
}

std::optional<ProjectPaths::Place> ProjectPaths::in_package(std::string_view manifest,
                                                            std::string_view path) const {
  const Package* longest = nullptr;
  for (const Package& package : packages_) {
    const bool is_front = path.starts_with(package.name) &&
                          (path.size() == package.name.size() || path[package.name.size()] == '/');
    if (is_front && name_of(package.manifest) == manifest &&
        (longest == nullptr || package.name.size() > longest->name.size()))
      longest = &package;
  }
  if (longest == nullptr) return std::nullopt;
  path.remove_prefix(std::min(longest->name.size() + 1, path.size()));
  return Place{folder_of(longest->manifest), path};
}

std::vector<std::string> ProjectPaths::by_alias(std::string_view folder,
                                                std::string_view path) const {
  std::vector<std::string> found;
  for (const Alias& alias : aliases_) {
    if (!alias.scope.empty() && !is_below(folder, alias.scope)) continue;
    const auto part = matched(alias.pattern, path);
    if (!part) continue;
    for (const std::string& target : alias.targets) {
      if (found.size() >= kTargetsMax) return found;
      std::string leads = target;
      if (const std::size_t star = leads.find('*'); star != std::string::npos)
        leads.replace(star, 1, *part);
      found.push_back(joined({}, leads));  // the part may hold ".."
    }
  }
  return found;
}

bool ProjectPaths::has_packages(std::string_view manifest) const {
  return std::ranges::any_of(
      packages_, [&](const Package& package) { return name_of(package.manifest) == manifest; });
}

}  // namespace efimd::context
