#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace efimd::service {

/// Whether a document may leave KV on the disk (ST-2), and whether it may be completed.
///
///   scheme     only files: an untitled text, or one of another scheme, is nowhere yet
///   secret     built-in patterns of files that hold keys and passwords; no completion either,
///              unless completion.secret_files says so
///   exclude    the user's globs, cache.exclude
///   gitignore  .gitignore in the file's folder and above, up to the repository's root, when
///              cache.gitignore says so; global excludes of git are not looked at
///
/// A pattern without "/" is for any part of the path: a file's name, or a folder it is in. One with
/// "/" is for the path from the root, or of any leading folders of it; "~/" is the home folder.
///
/// Thread: io, which reads .gitignore files when a document is opened. A value.
class Exclusions {
 public:
  enum class Reason { kNone, kScheme, kSecret, kExclude, kGitignore };
  struct Verdict {
    Reason reason = Reason::kNone;
    std::string pattern;  ///< that matched
    bool may_be_stored() const { return reason == Reason::kNone; }
  };

  Exclusions() = default;
  Exclusions(std::vector<std::string> globs, bool gitignore);

  Verdict judge(std::string_view uri) const;

  /// The built-in patterns; what they match is in lower case.
  static std::span<const std::string_view> secret_patterns();

 private:
  std::vector<std::string> globs_;
  bool gitignore_ = false;
};

/// Whether git would ignore the file for the .gitignore files between it and its repository's root;
/// the pattern that decided, empty when none did. Limits: kIgnoreBytesMax of each file.
std::string gitignored_by(const std::filesystem::path& file);
inline constexpr std::size_t kIgnoreBytesMax = std::size_t{1} << 20;

}  // namespace efimd::service
