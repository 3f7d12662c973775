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
///   secret     files that hold keys and passwords, by built-in patterns of names, also behind a
///              symbolic link, or by their content (secrets.h); no completion either, unless
///              completion.secret_files says so
///   exclude    the user's globs, cache.exclude
///   gitignore  if cache.gitignore says so, what git would ignore: .gitignore in the file's folder
///              and above, up to the repository's root; the repository's own info/exclude; and the
///              user's file for all repositories (core.excludesFile)
///   unknown    nobody can tell, because the file system does not answer, or the path is longer than
///              one may be
///
/// A pattern without "/" matches any part of the path: the file's name, or a folder that it is in.
/// A pattern that begins with "/" matches the path from the root, or any leading folders of it; "~/"
/// is the home folder. Another pattern with "/" may begin at any folder.
///
/// Thread: any but io, since it asks the file system, which may stall. A value.
class Exclusions {
 public:
  enum class Reason { kNone, kScheme, kSecret, kExclude, kGitignore, kUnknown };
  struct Verdict {
    Reason reason = Reason::kNone;
    std::string pattern;  ///< that matched
    bool may_be_stored() const { return reason == Reason::kNone; }
    /// Whether its text may go to the engine elsewhere: not what its owner keeps off the disk, nor a
    /// file of which nothing is known.
    bool may_leave() const { return reason == Reason::kNone || reason == Reason::kScheme; }
    std::string why_not_stored() const;  ///< for people; empty if it may be
  };

  Exclusions() = default;
  Exclusions(std::vector<std::string> globs, bool gitignore);

  /// By where it lies; and by what it holds, too. `pattern` says why it is a secret.
  Verdict judge(std::string_view uri) const;
  /// Of all that a folder holds: whether it need not be looked into.
  Verdict judge_folder(const std::filesystem::path& folder) const;
  Verdict judge(std::string_view uri, std::string_view text) const;

  /// The built-in patterns, in lower case; names are matched in lower case.
  static std::span<const std::string_view> secret_patterns();

 private:
  enum class Kind { kFile, kFolder };
  Verdict judge(std::string_view uri, Kind kind) const;
  std::vector<std::string> globs_;
  bool gitignore_ = false;
};

/// Where git keeps its files outside of repositories.
struct GitHome {
  std::filesystem::path home;         ///< of .gitconfig and of "~/"; empty: unknown
  std::filesystem::path config_home;  ///< of git/config and git/ignore
  static GitHome of_this_process();
};

/// The pattern by which git would ignore the file; empty if it would not. A later source overrides
/// an earlier one: the user's file, the repository's info/exclude, .gitignore from the root down.
/// core.excludesFile is read from the user's two configuration files, without their includes.
/// Limits: kIgnoreBytesMax of each file.
std::string gitignored_by(const std::filesystem::path& file,
                          const GitHome& home = GitHome::of_this_process());
/// Whether the file says what git ignores in a folder or repository; told by its path alone.
bool says_what_is_ignored(const std::filesystem::path& file);
inline constexpr std::size_t kIgnoreBytesMax = std::size_t{1} << 20;

}  // namespace efimd::service
