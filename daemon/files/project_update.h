#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/recall/batch.h"
#include "daemon/recall/index.h"

namespace efimd::service {

/// Has small batches merged, and the result delivered as an update. Any thread; does nothing once the
/// reader is gone.
using Merger = std::function<void(recall::Merge)>;

/// Is told of files that left the index for want of room. Any thread; does nothing once the reader is
/// gone.
using Dropper = std::function<void(const recall::Dropped&)>;

/// The changes of a project's files, for recall::Index.
struct ProjectUpdate {
  std::string project;               ///< its root's path
  recall::BatchPtr files;            ///< new, or in place of those of the same path; may be null
  std::vector<std::string> removed;  ///< paths: gone, or excluded now
  bool is_last = false;              ///< this look is complete
  /// Set: `files` stand for the batches that this merges.
  std::shared_ptr<const recall::Merge> merge = nullptr;
  Merger merger = nullptr;    ///< for a merge that the update makes worthwhile
  Dropper dropper = nullptr;  ///< for what the update leaves no room for
};

/// Brings the update into the index, and has merged what is worth merging then.
void apply(const ProjectUpdate& update, recall::Index& index);

}  // namespace efimd::service
