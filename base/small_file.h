#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace efimd {

/// The first `bytes_max` bytes of a regular file. Empty if there is none or it cannot be read. A pipe
/// in its place is not waited for.
std::string read_small_file(const std::filesystem::path& file, std::size_t bytes_max);

/// Replaces the file as a whole, for its owner alone, and makes its folder if there is none. kIo, also
/// for an empty name.
Result<void> replace_small_file(const std::filesystem::path& file, std::string_view text);

/// Another text for each state of a file: which one it is, its size and when it was written. Empty if
/// there is none.
std::string state_of_file(const std::filesystem::path& file);

}  // namespace efimd
