#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/context/project_paths.h"
#include "daemon/syntax/imports.h"

namespace efimd::context {

/// A file of the project that a text may use.
struct UsedFile {
  std::string path;
  std::string why;  ///< "imported as a.b", for people
  /// What the import names of it; empty: all.
  std::vector<std::string> names = {};
  /// Not imported but seen all the same, as Go's and Java's files of one package are.
  bool is_beside = false;
};

/// More are left out.
inline constexpr std::size_t kUsedFilesMax = 48;

/// The files of the project that `imports` of the file `from` mean, in the order of the imports, then
/// those that its language shows it besides. Each once, and never the file itself. What is no file of
/// the project, such as a library, is none of them.
///
/// Import paths are followed as far as names of files and packages show them, and the aliases of
/// TypeScript's settings. No other compiler's settings are read.
std::vector<UsedFile> used_files(const std::vector<syntax::Import>& imports, std::string_view from,
                                 syntax::Grammar grammar, const ProjectPaths& project);

}  // namespace efimd::context
