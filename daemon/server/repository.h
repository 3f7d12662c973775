#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "daemon/completion/request.h"
#include "daemon/prompt/path_head.h"

namespace efimd::service {

/// The git working tree that a file is in, and its repository.
struct Repository {
  std::filesystem::path root;  ///< the working tree's: the folder with .git
  std::filesystem::path git;  ///< the repository's own folder, which all of its working trees share
};

/// nullopt if the file is in none. Looks for .git in the file's folder and each one above; reads
/// two small files if the working tree is an added one (gitrepository-layout(5)).
std::optional<Repository> repository_of(const std::filesystem::path& file);

/// Whose text the document shares with recall: that of its working tree of git. Files outside
/// any tree and texts that are no files share with nobody.
completion::TextHome text_home_of(std::string_view uri);

/// The repository's name is that of the folder with its .git, the same in all its working trees.
/// Outside any repository a file has its name alone; a text that is no file has none.
prompt::FileName file_name_of(std::string_view uri);

}  // namespace efimd::service
