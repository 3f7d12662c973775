#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace efimd::service {

/// Which file a URI names, however an editor spells it: percent-escapes in either case or none,
/// "file://localhost", "//", "/./", "/../", symbolic links.
///
/// Thread: any but io, because it asks the file system about each part of the path; with
/// kAsWritten, any.
enum class Links { kResolved, kAsWritten };
class FileIdentity {
 public:
  /// A URI that names no file of this machine is itself alone.
  explicit FileIdentity(std::string_view uri, Links links = Links::kResolved);

  /// Whether both name one file, or `file` lies in the folder that this one names.
  bool holds(const FileIdentity& file) const;

 private:
  std::vector<std::string> paths_;  ///< as written, normalised; and with its links resolved
};

/// Those of `uris` that are the file, or lie in the folder, that `uri` names. In their order.
std::vector<std::string> uris_within(const std::string& uri, const std::vector<std::string>& uris,
                                     Links links = Links::kResolved);

}  // namespace efimd::service
