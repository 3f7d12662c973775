#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/files/project_files.h"

namespace efimd::service {

/// The files of a project whose text was handed over, by absolute path.
class KnownFiles {
 public:
  void know(const std::string& path, const FileStamp& stamp, std::size_t text_bytes) {
    forget(path);
    files_[path] = {stamp, text_bytes};
    bytes_ += text_bytes;
  }
  /// Whether it was known.
  bool forget(const std::string& path) {
    const auto found = files_.find(path);
    if (found == files_.end()) return false;
    bytes_ -= found->second.bytes;
    if (found->second.is_dropped()) --dropped_;
    files_.erase(found);
    return true;
  }
  /// Its text is held no more: it stays among the paths, but is known as no stamp.
  void drop(const std::string& path) {
    const auto found = files_.find(path);
    if (found == files_.end() || found->second.is_dropped()) return;
    bytes_ -= std::exchange(found->second, {}).bytes;
    ++dropped_;
  }

  bool has(const std::string& path) const { return files_.contains(path); }
  bool is_known_as(const std::string& path, const FileStamp& stamp) const {
    const auto found = files_.find(path);
    return found != files_.end() && found->second.stamp == stamp;
  }
  bool has_below(const std::string& folder) const {
    const std::string begin = folder + "/";
    const auto first = files_.lower_bound(begin);
    return first != files_.end() && first->first.starts_with(begin);
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, known] : files_) paths.push_back(path);
    return paths;
  }
  /// Of those whose text is held.
  std::size_t count() const { return files_.size() - dropped_; }
  /// Of text.
  std::uint64_t bytes() const { return bytes_; }
  /// Of all but this one.
  std::uint64_t bytes_without(const std::string& path) const {
    const auto found = files_.find(path);
    return found == files_.end() ? bytes_ : bytes_ - found->second.bytes;
  }

 private:
  struct Known {
    FileStamp stamp;
    std::size_t bytes = 0;
    bool is_dropped() const { return stamp == FileStamp{}; }  ///< no file that is read is empty
  };
  std::map<std::string, Known> files_;
  std::uint64_t bytes_ = 0;
  std::size_t dropped_ = 0;
};

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
