#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::service {

/// The files that a git working tree tracks, as its index has them (gitformat-index(5)). Git ignores none
/// of these, whatever .gitignore says.
///
/// A value. Limits: kIndexBytesMax of an index. An index that is damaged, larger, or of a version that is
/// not known (not 2 to 4), has none.
class TrackedFiles {
 public:
  static constexpr std::size_t kIndexBytesMax = std::size_t{64} << 20;

  TrackedFiles() = default;
  /// Of the working tree that has `folder`; none outside of one. Asks the file system.
  static TrackedFiles of(const std::filesystem::path& folder);
  /// From an index's bytes; the names get `root` in front.
  static TrackedFiles parse(std::string_view index, const std::filesystem::path& root);

  bool has(std::string_view path) const;
  bool has_below(std::string_view folder) const;
  std::size_t count() const { return paths_.size(); }

 private:
  std::vector<std::string> paths_;  ///< absolute, sorted
};

}  // namespace efimd::service
