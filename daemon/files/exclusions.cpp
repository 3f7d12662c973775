#include "daemon/files/exclusions.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "daemon/config/glob.h"
#include "daemon/files/repository.h"
#include "daemon/files/secrets.h"
#include "lsp/uri.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20U) : static_cast<char>(c);
  });
  return out;
}

/// The path and each folder that it is in, longest first: "/a/b", "/a".
template <class Visit>
bool any_leading(std::string_view path, Visit visit) {
  while (path.size() > 1) {
    if (visit(path)) return true;
    const std::size_t slash = path.rfind('/');
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
  return false;
}

std::string_view name_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string with_home(const std::string& glob) {
  const char* home = std::getenv("HOME");
  return glob.starts_with("~/") && home != nullptr ? home + glob.substr(1) : glob;
}

bool excludes(const std::string& glob, std::string_view path) {
  std::string pattern = with_home(glob);
  while (pattern.size() > 1 && pattern.ends_with('/')) pattern.pop_back();
  if (pattern.starts_with("./")) pattern.erase(0, 2);
  const bool of_name = pattern.find('/') == std::string::npos;
  // config.toml lies in no project whose folder "docs/*.md" could begin in: it begins in any.
  if (!of_name && !pattern.starts_with('/')) pattern.insert(0, "**/");
  return any_leading(path, [&](std::string_view leading) {
    return glob_match(pattern, of_name ? name_of(leading) : leading);
  });
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kIgnoreBytesMax) return {};
  std::ifstream stream(file, std::ios::binary);
  std::vector<std::string> lines;
  bool is_first = true;
  for (std::string line; std::getline(stream, line);) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (std::exchange(is_first, false) && line.starts_with(kByteOrderMark))
      line.erase(0, kByteOrderMark.size());
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ') && !line.ends_with("\\ "))
      line.pop_back();
    if (!line.empty() && line.front() != '#') lines.push_back(std::move(line));
  }
  return lines;
}

/// The verdict of one line of a .gitignore on `path`, relative to its folder: nullopt nothing, else
/// whether it is ignored. `is_folder`: the path is one.
std::optional<bool> line_says(std::string_view line, std::string_view path, bool is_folder) {
  const bool again = line.starts_with('!');
  if (again) line.remove_prefix(1);
  const bool folders_only = line.ends_with('/');
  if (folders_only) line.remove_suffix(1);
  if (line.empty() || (folders_only && !is_folder)) return std::nullopt;
  const bool of_name = line.find('/') == std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (!glob_match(line, of_name ? name_of(path) : path)) return std::nullopt;
  return !again;
}

/// The folders from the repository's root to the file's own.
std::vector<fs::path> folders_of(const fs::path& root, const fs::path& file) {
  std::vector<fs::path> folders;
  for (fs::path folder = file.parent_path(); folder != root; folder = folder.parent_path())
    folders.insert(folders.begin(), folder);
  folders.insert(folders.begin(), root);
  return folders;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// core.excludesFile of one of git's configuration files; empty when it says nothing.
std::string excludes_file_in(const fs::path& config) {
  std::string found;
  bool core = false;
  for (const std::string& line : lines_of(config)) {
    const std::string_view text = trimmed(line);
    if (text.starts_with('[')) core = lower(text) == "[core]";
    const std::size_t equals = text.find('=');
    if (!core || equals == std::string_view::npos ||
        lower(trimmed(text.substr(0, equals))) != "excludesfile")
      continue;
    std::string_view value = trimmed(text.substr(equals + 1));
    if (value.size() > 1 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    found = value;
  }
  return found;
}

fs::path user_excludes(const GitHome& home) {
  std::string named;
  for (const fs::path& config : {home.home / ".gitconfig", home.config_home / "git/config"})
    if (named.empty() && config.is_absolute()) named = excludes_file_in(config);
  const fs::path file = named.empty()             ? home.config_home / "git/ignore"
                        : named.starts_with("~/") ? home.home / named.substr(2)
                                                  : fs::path(named);
  return file.is_absolute() ? file : fs::path();
}

std::string ignoring_line(const fs::path& file, bool is_folder, const GitHome& home) {
  const auto repository = repository_of(file);
  if (!repository) return {};
  const fs::path& root = repository->root;
  const std::vector<fs::path> folders = folders_of(root, file);
  std::vector<std::pair<fs::path, std::vector<std::string>>> rules;
  for (const fs::path& of_root : {user_excludes(home), repository->git / "info/exclude"})
    if (auto lines = lines_of(of_root); !lines.empty()) rules.emplace_back(root, std::move(lines));
  for (const fs::path& folder : folders)
    if (auto lines = lines_of(folder / ".gitignore"); !lines.empty())
      rules.emplace_back(folder, std::move(lines));
  // From the root down, because an ignored folder's contents are ignored, even if a line below says
  // otherwise.
  const fs::path inside = file.lexically_relative(root);
  fs::path path = root;
  for (const fs::path& part : inside) {
    path /= part;
    std::string decided;
    for (const auto& [folder, lines] : rules) {
      const std::string relative = path.lexically_relative(folder).generic_string();
      if (relative.empty() || relative == "." || relative == ".." || relative.starts_with("../"))
        continue;
      for (const std::string& line : lines)
        if (const auto ignored = line_says(line, relative, path != file || is_folder))
          decided = *ignored ? line : std::string();
    }
    if (!decided.empty()) return decided;
  }
  return {};
}

}  // namespace

GitHome GitHome::of_this_process() {
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  GitHome home{variable("HOME"), variable("XDG_CONFIG_HOME")};
  if (home.config_home.empty()) home.config_home = home.home / ".config";
  return home;
}

std::span<const std::string_view> Exclusions::secret_patterns() {
  return service::secret_patterns();
}

bool says_what_is_ignored(const fs::path& file) {
  return file.filename() == ".gitignore" ||
         (file.filename() == "exclude" && file.parent_path().filename() == "info");
}

std::string gitignored_by(const fs::path& file, const GitHome& home) {
  return ignoring_line(file, false, home);
}

Exclusions::Exclusions(std::vector<std::string> globs, bool gitignore)
    : globs_(std::move(globs)), gitignore_(gitignore) {}

std::string Exclusions::Verdict::why_not_stored() const {
  switch (reason) {
    case Reason::kNone:
      break;
    case Reason::kScheme:
      return "it is no file";
    case Reason::kSecret:
      return "it may hold secrets (" + pattern + ")";
    case Reason::kExclude:
      return "cache.exclude names it (" + pattern + ")";
    case Reason::kGitignore:
      return "git ignores it (" + pattern + ")";
    case Reason::kUnknown:
      return "unknown file: " + pattern;
  }
  return {};
}

Exclusions::Verdict Exclusions::judge(std::string_view uri) const {
  return judge(uri, Kind::kFile);
}

Exclusions::Verdict Exclusions::judge_folder(const fs::path& folder) const {
  return judge(lsp::file_uri(folder.generic_string()), Kind::kFolder);
}

Exclusions::Verdict Exclusions::judge(std::string_view uri, Kind kind) const {
  const auto path = lsp::path_of(uri);
  if (path && path->size() >= kPathBytesMax) return {Reason::kUnknown, "its path is too long"};
  // An untitled document may be called .env, too.
  std::vector<std::string> names = {path ? *path : "/" + lsp::base_name(uri)};
  // A link to a secret is a secret, too.
  if (path) {
    std::error_code error;
    std::string real = fs::weakly_canonical(*path, error).generic_string();
    if (!error && real != names.front()) names.push_back(std::move(real));
  }
  for (const std::string& name : names)
    if (std::string pattern = secret_by_name(kind == Kind::kFolder ? name + "/-" : name);
        !pattern.empty())
      return {Reason::kSecret, std::move(pattern)};
  if (!path) return {Reason::kScheme, lsp::scheme_of(uri)};
  for (const std::string& glob : globs_)
    for (const std::string& name : names)
      if (excludes(glob, name)) return {Reason::kExclude, glob};
  if (gitignore_)
    if (std::string line = ignoring_line(*path, kind == Kind::kFolder, GitHome::of_this_process());
        !line.empty())
      return {Reason::kGitignore, std::move(line)};
  return {};
}

Exclusions::Verdict Exclusions::judge(std::string_view uri, std::string_view text) const {
  Verdict verdict = judge(uri);
  if (verdict.reason == Reason::kSecret) return verdict;
  if (std::string why = secret_by_content(text); !why.empty())
    return {Reason::kSecret, std::move(why)};
  return verdict;
}

}  // namespace efimd::service
