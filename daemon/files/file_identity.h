#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace efimd::service {

/// The real paths of many files. A folder is asked for once, so do not keep it for long.
class RealPaths {
 public:
  /// Absolute, without links; empty if the file system refuses. The file need not be there.
  std::string of(const std::string& path);

 private:
  std::unordered_map<std::string, std::string> folders_;  ///< empty: refused
};

/// Which file a URI names, however an editor spells it: percent-escapes in either case or none,
/// "file://localhost", "//", "/./", "/../", symbolic links.
///
/// Thread: any but io, because it asks the file system about each part of the path; without
/// `real_paths`, any.
class FileIdentity {
 public:
  /// A URI that names no file of this machine is itself alone. Links are resolved by `real_paths`, if
  /// there is one.
  FileIdentity(std::string_view uri, RealPaths* real_paths);

  /// Whether both name one file, or `file` lies in the folder that this one names.
  bool holds(const FileIdentity& file) const;

 private:
  std::vector<std::string> paths_;  ///< as written, normalised; and with its links resolved
};

enum class Links { kResolved, kAsWritten };

/// Those of `uris` that are the file, or lie in the folder, that `uri` names. In their order.
std::vector<std::string> uris_within(const std::string& uri, const std::vector<std::string>& uris,
                                     Links links = Links::kResolved);

}  // namespace efimd::service
