#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"

namespace efimd::service {

/// A configuration file of the user's, as it was read.
struct UserFile {
  std::filesystem::path path;       ///< as asked for, for messages
  std::filesystem::path real;       ///< behind links, where it is written
  std::optional<std::string> text;  ///< nullopt: there is none
};

inline constexpr std::size_t kUserFileBytesMax = std::size_t{4} << 20;

/// kUnsupported, with the reason, for what a program should not write. That is a file of somebody
/// else's, without write permission, or with several names, and what is no text in UTF-8 or too long.
Result<UserFile> read_user_file(const std::filesystem::path& path);

/// Puts `text` in the file's place, in one step and with its permissions; makes its folder. Refuses
/// if the file was changed since it was read.
Result<void> write_user_file(const UserFile& file, const std::string& text);

/// Removes the file, and then up to `folders` folders above it as far as they are empty. Refuses if
/// the file was changed since it was read.
Result<void> remove_user_file(const UserFile& file, int folders);

/// How many of the folders above `path` are not there.
int folders_missing(const std::filesystem::path& path);

}  // namespace efimd::service
