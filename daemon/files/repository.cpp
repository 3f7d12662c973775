#include "daemon/files/repository.h"

#include <fstream>
#include <string>

#include "lsp/uri.h"

namespace efimd::service {

namespace {

namespace fs = std::filesystem;

/// The limit of a line in .git and commondir; a longer one is no path.
constexpr std::streamsize kLineBytesMax = 4096;

/// The first line of a small file; empty if there is none.
std::string first_line(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  std::ifstream stream(file, std::ios::binary);
  std::string line(static_cast<std::size_t>(kLineBytesMax), '\0');
  stream.read(line.data(), kLineBytesMax);
  line.resize(static_cast<std::size_t>(stream.gcount()));
  return line.substr(0, line.find_first_of("\r\n"));
}

fs::path git_of(const fs::path& root) {
  const fs::path own = own_git_of(root);
  const std::string common = first_line(own / "commondir");
  return (common.empty() ? own : own / common).lexically_normal();
}

/// "project" of /home/me/project/.git, /home/me/project/.bare and /srv/project.git. Of a submodule the
/// whole name, such as "three.js".
std::string name_of(const fs::path& git) {
  fs::path folder = git.has_filename() ? git : git.parent_path();
  if (folder.filename() == ".git" || folder.filename() == ".bare") folder = folder.parent_path();
  return (folder.extension() == ".git" ? folder.stem() : folder.filename()).string();
}

}  // namespace

fs::path own_git_of(const fs::path& root) {
  const fs::path git = root / ".git";
  constexpr std::string_view kPointer = "gitdir: ";
  const std::string line = first_line(git);
  return line.starts_with(kPointer) ? root / line.substr(kPointer.size()) : git;
}

std::optional<Repository> repository_of(const fs::path& file) {
  if (file.native().size() >= kPathBytesMax) return std::nullopt;
  std::error_code error;
  for (fs::path folder = file.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (fs::exists(folder / ".git", error)) return Repository{folder, git_of(folder)};
    if (folder == folder.root_path()) break;
  }
  return std::nullopt;
}

prompt::FileName file_name_of(std::string_view uri) {
  const auto path = lsp::text_path_of(uri);
  if (!path) return {};
  const fs::path file(*path);
  const auto repository = repository_of(file);
  if (!repository) return {{}, file.filename().generic_string()};
  return {name_of(repository->git), file.lexically_relative(repository->root).generic_string()};
}

}  // namespace efimd::service
