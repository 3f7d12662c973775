#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/files/project_files.h"

namespace efimd::service {

/// The files of a project whose text was handed over, by absolute path.
class KnownFiles {
 public:
  void know(const std::string& path, const FileStamp& stamp) {
    forget(path);
    stamps_[path] = stamp;
    bytes_ += stamp.bytes;
  }
  /// Whether it was known.
  bool forget(const std::string& path) {
    const auto found = stamps_.find(path);
    if (found == stamps_.end()) return false;
    bytes_ -= found->second.bytes;
    if (found->second == kDropped) --dropped_;
    stamps_.erase(found);
    return true;
  }
  /// Its text is held no more: it stays among the paths, but is known as no stamp.
  void drop(const std::string& path) {
    const auto found = stamps_.find(path);
    if (found == stamps_.end() || found->second == kDropped) return;
    bytes_ -= std::exchange(found->second, kDropped).bytes;
    ++dropped_;
  }

  bool has(const std::string& path) const { return stamps_.contains(path); }
  bool is_known_as(const std::string& path, const FileStamp& stamp) const {
    const auto found = stamps_.find(path);
    return found != stamps_.end() && found->second == stamp;
  }
  bool has_below(const std::string& folder) const {
    const std::string begin = folder + "/";
    const auto first = stamps_.lower_bound(begin);
    return first != stamps_.end() && first->first.starts_with(begin);
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, stamp] : stamps_) paths.push_back(path);
    return paths;
  }
  /// Of those whose text is held.
  std::size_t count() const { return stamps_.size() - dropped_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Of all but this one.
  std::uint64_t bytes_without(const std::string& path) const {
    const auto found = stamps_.find(path);
    return found == stamps_.end() ? bytes_ : bytes_ - found->second.bytes;
  }

 private:
  static constexpr FileStamp kDropped{};  ///< no file that is read is empty

  std::map<std::string, FileStamp> stamps_;
  std::uint64_t bytes_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace efimd::service
