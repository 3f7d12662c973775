#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/get/hub.h"

namespace efimd::get {

/// A repository's folder in the hub cache (daemon/models/hub_folder.h has the layout).
class CachedRepository {
 public:
  CachedRepository(std::filesystem::path hub, const std::string& repository);

  /// Where a file's content is put, and what is locked meanwhile.
  std::filesystem::path blob(const HubFile& file) const;
  std::filesystem::path lock(const HubFile& file) const;
  /// The file under its own name.
  std::filesystem::path path(const std::string& commit, const std::string& file) const;

  /// kIo, where a folder cannot be made.
  Result<void> make_folders() const;
  /// Whether the content is there, as a blob or, without links, under its name; a size is enough, because a blob gets its name when it is checked.
  bool has(const std::string& commit, const HubFile& file) const;
  /// Names the blob in the commit's snapshot, if it is not yet; on a file system without links the
  /// blob itself is put there, as huggingface_hub does.
  Result<void> link(const std::string& commit, const HubFile& file) const;
  /// `revision` is this commit from now on. Not kept if the revision is a commit itself.
  Result<void> refer(const std::string& revision, const std::string& commit) const;

  /// Files of the commit that a revision is known to be, as the cache has them, with the size of
  /// each; empty if it has none.
  HubRepository known(const std::string& revision) const;

 private:
  std::filesystem::path hub_, folder_;
  std::string name_;
};

}  // namespace efimd::get
