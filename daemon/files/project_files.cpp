#include "daemon/files/project_files.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "daemon/files/notebook_file.h"
#include "daemon/files/reading_time.h"
#include "daemon/files/repository.h"
#include "daemon/files/secrets.h"
#include "daemon/files/tracked_files.h"
#include "daemon/recall/batch.h"
#include "daemon/text/document.h"
#include "lsp/uri.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

/// A text whose lines are longer on average was not written by hand.
constexpr std::size_t kMeanLineBytesMax = 300;

bool is_skipped_folder(std::string_view name) {
  constexpr auto kFilled = std::to_array<std::string_view>(
      {"node_modules", "__pycache__", "site-packages", "bower_components", "CMakeFiles"});
  return name.starts_with('.') || std::ranges::find(kFilled, name) != kFilled.end();
}

std::uintmax_t bytes_max(const fs::path& file) {
  return is_notebook(file.native()) ? kNotebookBytesMax : recall::kFileBytesMax;
}

/// Without kScheme: every path here is a file's.
bool may_be_read(const fs::path& file, const Exclusions& exclusions) {
  return exclusions.judge(lsp::file_uri(file.generic_string())).may_be_stored();
}

std::optional<FileStamp> stamp(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.symlink_status(error).type() != fs::file_type::regular || error) return std::nullopt;
  const std::uintmax_t bytes = entry.file_size(error);
  if (error || bytes == 0 || bytes > bytes_max(entry.path())) return std::nullopt;
  const fs::file_time_type modified = entry.last_write_time(error);
  if (error) return std::nullopt;
  return FileStamp{modified.time_since_epoch().count(), bytes};
}

class Lister {
 public:
  Lister(const Exclusions& exclusions, const ProjectLimits& limits,
         const std::function<bool()>& stopped)
      : exclusions_(exclusions), limits_(limits), stopped_(stopped), time_(limits) {}

  ProjectListing list(const fs::path& root) {
    tracked_ = TrackedFiles::of(root);
    // Folders near the root first: they are what a project is about if not all of it is read.
    std::vector<Folder> level{{root}};
    for (std::size_t depth = 0; !level.empty() && !ended_; ++depth) {
      if (depth > limits_.depth) {
        listing_.left_out = "depth";
        break;
      }
      std::vector<Folder> below;
      for (const Folder& folder : level) {
        if (ended_) break;
        list_folder(folder, below);
      }
      std::ranges::sort(below, {}, &Folder::path);
      level = std::move(below);
    }
    return std::move(listing_);
  }

 private:
  struct Folder {
    fs::path path;
    bool only_tracked = false;  ///< git ignores the folder, or it is one of those that are skipped
  };

  void list_folder(const Folder& folder, std::vector<Folder>& below) {
    std::error_code error;
    fs::directory_iterator entries(folder.path, fs::directory_options::skip_permission_denied,
                                   error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      if (is_over()) return;
      if (entries->symlink_status(error).type() == fs::file_type::directory)
        take_folder(*entries, folder.only_tracked, below);
      else
        take_file(*entries, folder.only_tracked);
    }
  }

  void take_folder(const fs::directory_entry& entry, bool only_tracked,
                   std::vector<Folder>& below) {
    std::error_code error;
    if (!limits_.nested && fs::exists(entry.path() / ".git", error)) return;
    const Exclusions::Verdict verdict = exclusions_.judge_folder(entry.path());
    if (!verdict.may_be_stored() && verdict.reason != Exclusions::Reason::kGitignore) return;
    only_tracked |= !verdict.may_be_stored() || is_skipped_folder(entry.path().filename().string());
    if (!only_tracked || tracked_.has_below(entry.path().generic_string()))
      below.push_back({entry.path(), only_tracked});
  }

  void take_file(const fs::directory_entry& entry, bool only_tracked) {
    const auto found = stamp(entry);
    if (!found) return;
    std::string path = entry.path().generic_string();
    if (only_tracked && !tracked_.has(path)) return;
    const Exclusions::Verdict verdict = exclusions_.judge(lsp::file_uri(path));
    if (verdict.may_be_stored() ||
        (verdict.reason == Exclusions::Reason::kGitignore && tracked_.has(path)))
      listing_.files.emplace(std::move(path), *found);
  }

  bool is_over() {
    if (ended_) return true;
    if (listing_.files.size() >= limits_.files) listing_.left_out = "files";
    if (++entries_ > limits_.entries) listing_.left_out = "entries";
    if (time_.is_over()) listing_.left_out = "time";
    ended_ = stopped_() || !listing_.left_out.empty();
    return ended_;
  }

  const Exclusions& exclusions_;
  const ProjectLimits& limits_;
  const std::function<bool()>& stopped_;
  const ReadingTime time_;
  TrackedFiles tracked_;
  ProjectListing listing_;
  std::size_t entries_ = 0;
  bool ended_ = false;
};

}  // namespace

ProjectListing list_project(const fs::path& root, const Exclusions& exclusions,
                            const ProjectLimits& limits, const std::function<bool()>& stopped) {
  return Lister(exclusions, limits, stopped).list(root);
}

namespace {

/// Whether a listing follows all folders from the root to this one, the last included.
bool is_way_listed(const fs::path& root, const fs::path& folder) {
  const fs::path inside = folder.lexically_relative(root);
  if (inside.empty() || *inside.begin() == "..") return false;
  if (inside == ".") return true;
  fs::path way = root;
  for (const fs::path& part : inside) {
    way /= part;
    std::error_code error;
    if (is_skipped_folder(part.string()) || fs::is_symlink(way, error)) return false;
  }
  return true;
}

}  // namespace

bool is_in_nested_repository(const fs::path& root, const fs::path& file) {
  fs::path way = root;
  for (const fs::path& part : file.parent_path().lexically_relative(root)) {
    if (part == ".") continue;
    way /= part;
    std::error_code error;
    if (fs::exists(way / ".git", error)) return true;
  }
  return false;
}

bool is_listed_folder(const fs::path& root, const fs::path& folder, const Exclusions& exclusions) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(folder, error)) && is_way_listed(root, folder) &&
         exclusions.judge_folder(folder).may_be_stored();
}

std::optional<FileStamp> stamp_of(const fs::path& root, const fs::path& file,
                                  const Exclusions& exclusions) {
  if (!is_way_listed(root, file.parent_path())) return std::nullopt;
  std::error_code error;
  const fs::directory_entry entry(file, error);
  if (error) return std::nullopt;
  const auto found = stamp(entry);
  return found && may_be_read(file, exclusions) ? found : std::nullopt;
}

std::optional<std::string> read_code(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(bytes_max(file) + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (text.size() > bytes_max(file)) return std::nullopt;
  if (is_notebook(file.native())) text = python_cells(text).value_or("");
  if (text.empty() || text.size() > recall::kFileBytesMax) return std::nullopt;
  if (text.find('\0') != std::string::npos) return std::nullopt;
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  if (text.size() / lines > kMeanLineBytesMax || !secret_by_content(text).empty())
    return std::nullopt;
  return text::document_text(std::move(text));
}

namespace {

/// The home folder and the file system's root are none.
bool is_project(const fs::path& folder) {
  const char* home = std::getenv("HOME");
  return folder != folder.root_path() && (home == nullptr || folder != fs::path(home));
}

}  // namespace

std::optional<fs::path> workspace_folder_of(const fs::path& file,
                                            std::span<const fs::path> workspace) {
  std::optional<fs::path> found;
  for (const fs::path& folder : workspace) {
    const fs::path inside = file.lexically_relative(folder);
    if (inside.empty() || *inside.begin() == ".." || !is_project(folder)) continue;
    if (!found || folder.native().size() > found->native().size()) found = folder;
  }
  return found;
}

std::optional<fs::path> project_of(const fs::path& file, std::span<const fs::path> workspace) {
  if (auto folder = workspace_folder_of(file, workspace)) return folder;
  const auto repository = repository_of(file);
  if (!repository || !is_project(repository->root)) return std::nullopt;
  return repository->root;
}

completion::TextHome text_home_of(std::string_view uri) {
  const auto path = lsp::text_path_of(uri);
  if (!path) return {std::string(uri), std::string(uri)};
  const auto project = project_of(*path, {});
  return {project ? project->string() : *path, *path};
}

}  // namespace efimd::service
