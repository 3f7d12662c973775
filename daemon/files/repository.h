#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

#include "daemon/prompt/path_head.h"

namespace efimd::service {

/// Linux's PATH_MAX: no file has a longer path. Work on one costs the square of its parts.
inline constexpr std::size_t kPathBytesMax = 4096;

/// The git working tree that a file is in, and its repository.
struct Repository {
  std::filesystem::path root;  ///< the working tree's: the folder with .git
  std::filesystem::path git;  ///< the repository's own folder, which all of its working trees share
};

/// nullopt if the file is in none. Looks for .git in the file's folder and each one above. Reads
/// two small files if the working tree is an added one (gitrepository-layout(5)).
std::optional<Repository> repository_of(const std::filesystem::path& file);

/// The folder of a working tree's own files, such as its index; that of the repository, unless the working
/// tree is an added one.
std::filesystem::path own_git_of(const std::filesystem::path& root);

/// A repository has the name of the folder with its .git; that is the same in all of its working
/// trees. Outside a repository, a file has only its own name; a text that is no file has none.
prompt::FileName file_name_of(std::string_view uri);

}  // namespace efimd::service
