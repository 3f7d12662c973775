#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "engine/kv/page_store.h"

namespace efimd::engine {

/// Which unused page goes first (KV-3): the one whose time is up first.
///
/// A page's time is that of its last use, and as many visits more as its documents are kept longer.
/// If none is kept longer, that is the order of use. Time counts visits, and uses within a visit.
/// A clock's time does not count, so a weekend makes nothing old.
///
/// Thread: engine.  Limits: kSourcesMax documents are kept longer; more are kept as others are.
class PageOrder {
 public:
  static constexpr std::size_t kSourcesMax = 8192;
  static constexpr int kLongerMax = 1 << 20;

  struct Time {
    std::uint64_t visit = 0;
    std::uint64_t use = 0;
    auto operator<=>(const Time&) const = default;
  };

  /// The time of a use that is made now; each is later than the one before it.
  Time use() { return {visit_, ++uses_}; }
  Time until(const Time& last_use, std::span<const SourceId> sources) const {
    int longer = 0;
    for (const SourceId source : sources) longer = std::max(longer, longer_of(source));
    return {last_use.visit + static_cast<std::uint64_t>(longer), last_use.use};
  }

  /// A visit of this document begins; its pages are kept `longer` visits longer from here on. The
  /// caller puts them in order again.
  void visited(SourceId source, int longer) {
    ++visit_;
    longer = std::clamp(longer, 0, kLongerMax);
    if (longer == 0)
      longer_.erase(source);
    else if (longer_.size() < kSourcesMax || longer_.contains(source))
      longer_[source] = longer;
  }
  void forget(SourceId source) { longer_.erase(source); }
  int longer_of(SourceId source) const {
    const auto found = longer_.find(source);
    return found == longer_.end() ? 0 : found->second;
  }

 private:
  std::uint64_t visit_ = 0;
  std::uint64_t uses_ = 0;
  std::unordered_map<SourceId, int> longer_;
};

}  // namespace efimd::engine
