#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/request.h"
#include "daemon/files/exclusions.h"

namespace efimd::service {

/// The limits of reading one project. Past a limit the rest is left out, and the listing says so.
struct ProjectLimits {
  std::size_t bytes = std::size_t{64} << 20;  ///< of text
  std::size_t files = 20'000;
  std::size_t entries = 200'000;  ///< of folders, looked at
  std::size_t depth = 24;         ///< folders below the root
  /// For the listing, and again for the reading. The thread gives way to all others, the model's too, and
  /// may get a tenth of a processor. So its own time counts; the clock's ends what a slow disk holds up.
  std::chrono::milliseconds processor_time{30'000};
  std::chrono::milliseconds time{900'000};
  bool nested = true;  ///< else other repositories below the root are left out
};

/// A file's attributes when it was listed. Another look shows whether to read it again.
struct FileStamp {
  std::int64_t modified = 0;  ///< in ticks of the file system's clock
  std::uint64_t bytes = 0;
  bool operator==(const FileStamp&) const = default;
};

/// The files of a project that may be read, by absolute path.
struct ProjectListing {
  std::map<std::string, FileStamp> files;
  std::string_view left_out;  ///< which limit ended it: "files", "entries", "depth", "time"; empty
};

/// Lists a project's files: regular ones of a code file's size, which `exclusions` leaves alone or git
/// tracks although it would ignore them. Links are not followed, so that there are no loops and nothing
/// outside is read. Of hidden folders, and of those that package managers fill, only what git tracks is
/// listed. `stopped` is asked before each entry, and may wait.
///
/// Asks the file system; hangs if that does.
ProjectListing list_project(const std::filesystem::path& root, const Exclusions& exclusions,
                            const ProjectLimits& limits, const std::function<bool()>& stopped);

/// Its stamp if a listing would have it now, but for what git tracks although it would ignore it.
std::optional<FileStamp> stamp_of(const std::filesystem::path& root,
                                  const std::filesystem::path& file, const Exclusions& exclusions);

/// Whether the file is in another repository below the root.
bool is_in_nested_repository(const std::filesystem::path& root, const std::filesystem::path& file);

/// Whether a listing would look into that folder now.
bool is_listed_folder(const std::filesystem::path& root, const std::filesystem::path& folder,
                      const Exclusions& exclusions);

/// The text of a file, as a document has it; of a notebook, that of its Python cells. nullopt if it cannot be read, is binary or too large
/// for code, or has the long lines of machine-made text.
std::optional<std::string> read_code(const std::filesystem::path& file);

/// The innermost of the workspace's folders that holds the file, by their names alone. nullopt if none
/// does, or it is the home folder or the file system's root, which are no projects.
std::optional<std::filesystem::path> workspace_folder_of(
    const std::filesystem::path& file, std::span<const std::filesystem::path> workspace);

/// The project of a file: the innermost of the workspace's folders that holds it, or else its git
/// working tree. nullopt if there is neither, or if the folder is the home folder or the file
/// system's root, which are no projects.
std::optional<std::filesystem::path> project_of(const std::filesystem::path& file,
                                                std::span<const std::filesystem::path> workspace);

/// Whose text the document shares with recall: that of its project. A file outside any project
/// and a text that is no file are projects of their own.
completion::TextHome text_home_of(std::string_view uri);

}  // namespace efimd::service
