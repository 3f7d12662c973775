#include "daemon/files/known_projects.h"

namespace efimd::service {

void KnownProjects::add(const std::string& root, bool nested) {
  const std::lock_guard lock(mutex_);
  Project& project = projects_[root];
  project.status.project = root;
  project.nested |= nested;
}

void KnownProjects::leave(const std::string& root) {
  const std::lock_guard lock(mutex_);
  projects_.erase(root);
}

bool KnownProjects::has(const std::string& root) const {
  const std::lock_guard lock(mutex_);
  return projects_.contains(root);
}

void KnownProjects::note(const std::string& root, const std::function<void(Project&)>& change) {
  const std::lock_guard lock(mutex_);
  if (const auto project = projects_.find(root); project != projects_.end())
    change(project->second);
}

std::vector<std::pair<std::string, FileStamp>> KnownProjects::news(
    const std::string& root, const ProjectListing& listing) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, FileStamp>> found;
  const auto project = projects_.find(root);
  if (project == projects_.end()) return found;
  for (const auto& [path, stamp] : listing.files)
    if (!project->second.files.is_known_as(path, stamp)) found.emplace_back(path, stamp);
  return found;
}

std::vector<std::string> KnownProjects::roots_of(const std::string& file) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> roots;
  for (const auto& [root, project] : projects_) {
    if (file.empty())
      roots.push_back(root);
    else if (file.starts_with(root + "/") && (roots.empty() || root.size() > roots.front().size()))
      roots.assign(1, root);
  }
  return roots;
}

std::vector<std::string> KnownProjects::files(const std::string& root) const {
  const std::lock_guard lock(mutex_);
  const auto project = projects_.find(root);
  return project == projects_.end() ? std::vector<std::string>() : project->second.files.paths();
}

std::vector<ProjectStatus> KnownProjects::status() const {
  const std::lock_guard lock(mutex_);
  std::vector<ProjectStatus> rows;
  for (const auto& [root, project] : projects_) {
    ProjectStatus& row = rows.emplace_back(project.status);
    row.files = project.files.count();
    row.bytes = project.files.bytes();
  }
  return rows;
}

}  // namespace efimd::service
