#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/recall/batch.h"

namespace efimd::recall_places {

/// A folder's code files, in the order of their paths.
struct Project {
  std::string name;
  std::vector<recall::File> files;
};

/// Reads files with an extension of code, up to 1 MiB each; those with zero bytes are left out.
Project read_project(const std::filesystem::path& folder);

/// Batches of a project's files, by family.
std::vector<recall::BatchPtr> batches_of(const Project& project);

enum class Kind { kInside, kStart, kFinished };
inline constexpr std::size_t kKinds = 3;

/// A cursor in a file whose own line was taken away after it.
struct Cursor {
  Kind kind = Kind::kInside;
  std::size_t file = 0;
  std::string text;    ///< the file without the rest of the line
  std::size_t at = 0;  ///< in it
  std::string truth;   ///< the rest of the line, without blanks at its end; empty if finished
};

/// `count` cursors of each kind, drawn evenly over lines with content. Same seed, same cursors.
std::vector<Cursor> draw_cursors(const Project& project, std::size_t count, std::uint64_t seed);

}  // namespace efimd::recall_places
