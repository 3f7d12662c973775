#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace efimd::context {

/// A package of a project, as its own manifest names it.
struct Package {
  std::string name;      ///< as imports write it
  std::string manifest;  ///< the file's absolute path; its last part says of which language
  bool operator==(const Package&) const = default;
};

/// What a project's settings say of imports: where the paths of that pattern lead.
struct Alias {
  std::string scope;    ///< the folder whose texts it is for, absolute; empty: all
  std::string pattern;  ///< as imports write it; one "*" may stand for a part
  std::vector<std::string>
      targets;  ///< absolute, with "*" where that part goes; sought in this order
  bool operator==(const Alias&) const = default;
};

/// The paths of a project's files, to find one by what an import says of it.
///
/// A value that does not change; any thread.
class ProjectPaths {
 public:
  /// `root` and `files` are absolute, with "/".
  ProjectPaths(std::string root, std::vector<std::string> files, std::vector<Package> packages = {},
               std::vector<Alias> aliases = {});

  const std::string& root() const { return root_; }
  bool has(std::string_view path) const;
  /// The files whose last folders and name are `end`, such as "a/b.h". All of them: which one is meant
  /// may depend on who asks, and large projects have hundreds of one name.
  std::vector<std::string_view> ending_with(std::string_view end) const;
  /// The files right in that folder, by name.
  std::vector<std::string_view> in_folder(std::string_view folder) const;
  /// Folders, absolute, whose last ones are `end`, and that have files of their own.
  std::vector<std::string_view> folders_ending_with(std::string_view end) const;

  /// Where an import path leads: the folder of a package, and what the path says behind its name.
  struct Place {
    std::string_view folder, rest;
  };
  /// By the package with the longest name that `path` is or begins with, among those with a manifest
  /// of that file name ("go.mod").
  std::optional<Place> in_package(std::string_view manifest, std::string_view path) const;
  bool has_packages(std::string_view manifest) const;
  /// Where the aliases lead that `path` matches and that are for texts in `folder`: those of the
  /// nearest settings first, of these the most exact pattern (as TypeScript chooses).
  /// At most kTargetsMax.
  std::vector<std::string> by_alias(std::string_view folder, std::string_view path) const;

  static constexpr std::size_t kTargetsMax = 64;

 private:
  std::string root_;
  std::vector<std::string> files_;  ///< sorted
  std::vector<Package> packages_;
  std::vector<Alias> aliases_;  ///< in the order of by_alias()
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_name_;
  std::unordered_map<std::string_view, std::vector<std::string_view>> folders_by_name_;
};
using ProjectPathsPtr = std::shared_ptr<const ProjectPaths>;

/// The folder of a path, without "/" at its end.
std::string_view folder_of(std::string_view path);
std::string_view name_of(std::string_view path);
/// `folder`/`path` without "." and ".."; empty if that leaves the root.
std::string joined(std::string_view folder, std::string_view path);

}  // namespace efimd::context
