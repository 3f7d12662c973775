#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/files/known_files.h"
#include "daemon/files/project_files.h"

namespace efimd::service {

/// The result of reading a project, for people.
struct ProjectStatus {
  std::string project;
  std::size_t files = 0;
  std::size_t bytes = 0;
  bool reading = false;
  bool stalled = false;       ///< its file system does not answer; it is read on once that does
  std::string_view left_out;  ///< the limit that ended it; empty if all was read
};

/// The projects that are read, and what of each was. One may be left while it is read: what is
/// noted of it then is lost.
///
/// Thread: any. The file system is never asked.
class KnownProjects {
 public:
  struct Project {
    KnownFiles files;
    bool nested = false;   ///< has other repositories below it
    ProjectStatus status;  ///< but for what is told of the files, and whether it is stalled
  };

  /// Once known, it stays as nested as it ever was.
  void add(const std::string& root, bool nested);
  void leave(const std::string& root);
  bool has(const std::string& root) const;
  void note(const std::string& root, const std::function<void(Project&)>& change);
  /// Files that are new or were changed, of what is listed; none of a project that was left.
  std::vector<std::pair<std::string, FileStamp>> news(const std::string& root,
                                                      const ProjectListing& listing) const;
  /// The innermost project with the file; all projects for an empty name.
  std::vector<std::string> roots_of(const std::string& file) const;
  std::vector<std::string> files(const std::string& root) const;
  std::vector<ProjectStatus> status() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Project> projects_;
};

}  // namespace efimd::service
