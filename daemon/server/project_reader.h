#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/recall/batch.h"
#include "daemon/server/exclusions.h"
#include "daemon/server/project_files.h"

namespace efimd::service {

/// What changed in a project's files: for recall::Index.
struct ProjectUpdate {
  std::string project;               ///< its root's path
  recall::BatchPtr files;            ///< new, or in place of those of the same path; may be null
  std::vector<std::string> removed;  ///< paths: gone, or excluded now
  bool is_last = false;              ///< nothing more comes of what was asked
};

/// What a project's reading came to, for people.
struct ProjectStatus {
  std::string project;
  std::size_t files = 0;
  std::size_t bytes = 0;
  bool reading = false;
  std::string_view left_out;  ///< the limit that ended it; empty if all was read
};

/// Reads the files of projects and hands their text over, ready to be searched. Files of the
/// family that is asked for come first, in small batches first.
///
/// Thread: any may call; all calls return at once. The work is done by a thread of its own (files),
/// with low priority, one project after the other. It may hang on a stalled file system; nobody
/// waits for it, also the destructor only for a moment.
/// Owns: nothing but what it remembers of files (paths, sizes, times).
/// Limits: ProjectLimits of each project; kNoticesMax changes waiting, more become one new look.
class ProjectReader {
 public:
  static constexpr std::size_t kNoticesMax = 256;
  using Deliver = std::function<void(ProjectUpdate)>;

  /// `deliver` is called on the files thread, and never after the destructor has returned.
  /// `exclusions` should heed .gitignore.
  ProjectReader(Exclusions exclusions, Deliver deliver, ProjectLimits limits = {});
  ~ProjectReader();
  ProjectReader(const ProjectReader&) = delete;
  ProjectReader& operator=(const ProjectReader&) = delete;

  /// Reads the project if it is not known; else looks for what changed since. Files of `family`
  /// (recall::family_of) come first.
  void look_at(const std::filesystem::path& root, std::string_view family);
  /// A file was made, changed or removed, says the editor. Of a project that is not known: nothing.
  void changed(const std::filesystem::path& root, const std::filesystem::path& file);
  /// Forgets the project; one that is being read is given up.
  void leave(const std::filesystem::path& root);

  std::vector<ProjectStatus> status() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace efimd::service
