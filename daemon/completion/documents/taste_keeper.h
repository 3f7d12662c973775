#pragma once

#include <filesystem>

#include "base/error.h"
#include "daemon/completion/documents/taste.h"

namespace efimd::completion {

/// The file that Taste is kept in between daemons: replaced as a whole, for its owner alone.
///
/// Thread: engine.  Fails: a file that cannot be read, written or understood costs its counts only.
class TasteKeeper {
 public:
  explicit TasteKeeper(std::filesystem::path file) : file_(std::move(file)) {}

  /// Nothing where there is no file.
  Result<void> load(Taste& taste) const;
  /// Removes the file if there is nothing to keep.
  Result<void> save(const Taste& taste) const;

 private:
  std::filesystem::path file_;
};

}  // namespace efimd::completion
