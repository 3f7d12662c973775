#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/in_flight.h"
#include "daemon/files/exclusions.h"
#include "daemon/files/file_threads.h"
#include "daemon/files/known_projects.h"
#include "daemon/files/project_files.h"
#include "daemon/files/project_jobs.h"
#include "daemon/files/project_update.h"

namespace efimd::service {

/// Reads the files of projects and hands their text over, ready to be searched. Files of the
/// family that is asked for come first, in small batches first.
///
/// Thread: any may call; all calls return at once. The work is done on file threads, with low priority,
/// one project after another. It is done in pieces of a millisecond and pauses while a request is in
/// flight, but for at most four fifths of the time (MakingWay). A file system may stall: after kStallMax without a step, the next project is
/// read meanwhile, and the status says so. Nobody else waits for it. Owns: only its memory of files (paths,
/// sizes, times). Limits: ProjectLimits of each project; those of ProjectJobs.
class ProjectReader {
 public:
  /// A step is one entry of a folder, or one file.
  static constexpr std::chrono::milliseconds kStallMax{5000};
  using Deliver = std::function<void(ProjectUpdate)>;
  struct Settings {
    ProjectLimits limits = {};
    std::shared_ptr<FileThreads> threads =
        nullptr;  ///< ask the file system; null: the reader's own
    std::chrono::milliseconds stall_max = kStallMax;
    /// The reading makes way for them; null: for nothing.
    std::shared_ptr<completion::InFlight> requests = nullptr;
  };

  /// `deliver` is called on a file thread, and never after the destructor has returned.
  /// `exclusions` should heed .gitignore.
  ProjectReader(Exclusions exclusions, Deliver deliver, Settings settings);
  ~ProjectReader();
  ProjectReader(const ProjectReader&) = delete;
  ProjectReader& operator=(const ProjectReader&) = delete;

  /// Reads the project if it is not known; else looks for changes since. Files of `family`
  /// (recall::family_of) come first. Repositories below the root are projects of their own, unless an
  /// editor's workspace has the root with them (`nested`).
  void look_at(const std::filesystem::path& root, std::string_view family, bool nested = false);
  /// A file was made, changed or removed, says the editor. It belongs to the innermost known project
  /// that holds it; of any other nothing is read. An empty path: look at all known projects again.
  void changed(const std::filesystem::path& file);
  /// Forgets the project. Nothing of it is delivered after this returns, unless it is looked at again.
  void leave(const std::string& root);

  std::vector<ProjectStatus> status() const;
  /// The files of the project that were read, absolute.
  std::vector<std::string> files(const std::string& root) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace efimd::service
