#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace efimd::service {

/// URIs of which the daemon may hold text or KV, each as its editor writes it: a purge looks for a
/// file's spellings among them.
///
/// Thread: its owner's. Limits: kBytesMax in all. Past it, its owner takes the one that was used longest
/// ago with take_excess(), and drops what is held of it.
class ServedUris {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{16} << 20;
  /// Of an entry beside its text.
  static constexpr std::size_t kEntryBytes = 128;
  explicit ServedUris(std::size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  /// Whether it is new here.
  bool use(std::string_view uri);
  void erase(std::string_view uri);
  std::optional<std::string> take_excess();
  std::size_t size() const { return order_.size(); }
  std::set<std::string> all() const { return {order_.begin(), order_.end()}; }

 private:
  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::list<std::string> order_;  ///< the last used first
  std::unordered_map<std::string_view, std::list<std::string>::iterator> places_;  ///< views of it
};

}  // namespace efimd::service
