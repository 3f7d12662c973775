#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/kv/page_order.h"
#include "engine/kv/page_store.h"

namespace efimd::engine {

/// The host's tier: pages in the machine's memory. It lies between a device with memory of its own
/// and the store on disk.
///
/// Keeps a copy of every page that it gets, in idle time or when the page leaves the device. It
/// passes the page on to the disk if the disk takes it. Over the budget it drops leaves first, in
/// PageOrder. It outlives the device: pages of a device that was given back or
/// lost are loaded from here.
///
/// Thread: engine.  Shares the store on disk, which may be null.
class HostStore final : public PageStore {
 public:
  HostStore(std::size_t budget_bytes, std::shared_ptr<PageStore> behind)
      : budget_bytes_(budget_bytes), behind_(std::move(behind)) {}

  bool is_usable() const override { return budget_bytes_ > 0 || (behind_ && behind_->is_usable()); }
  bool holds(const Digest& page) const override;
  void want(std::span<const Digest> pages) override;
  std::optional<std::vector<std::byte>> load(const Digest& page, std::chrono::microseconds patience,
                                             const std::stop_token& stop) override;
  /// Zero for a page that is here, because copying it costs a thousandth of evaluating it.
  std::chrono::microseconds load_time(const Digest& page) const override;
  bool takes_page(Leaving leaving) const override;
  bool write(PageToStore page) override;
  void add_sources(const Digest& page, std::span<const SourceId> sources) override;
  void visited(SourceId source, int longer) override;
  void forget(SourceId source) override;
  bool overwrite_some() override;
  /// Drops all pages that are kept here.
  void clear();
  HostUsage host_usage() const override { return {budget_bytes_, used_bytes_}; }

 private:
  struct Kept {
    PageToStore page;
    PageOrder::Time last_use = {};
    PageOrder::Time until = {};  ///< its place among the leaves, if it is one
  };
  using Pages = std::unordered_map<Digest, Kept>;

  void keep(PageToStore page);
  void touch(const Digest& page, Kept& kept);
  /// Lists the page as a leaf, in its order.
  void offer(const Digest& page, Kept& kept);
  /// Adds the pages that follow these, over any number of others.
  void add_followers(std::vector<Digest>& pages) const;
  void drop(Pages::iterator at);
  /// The page's bytes, which nobody finds any more.
  std::vector<std::byte> take_out(Pages::iterator at);
  bool has_children(const Digest& page) const { return children_.contains(page); }

  std::size_t budget_bytes_;
  std::size_t used_bytes_ = 0;
  std::shared_ptr<PageStore> behind_;
  Pages pages_;
  std::vector<std::vector<std::byte>> forgotten_;        ///< to be overwritten
  std::unordered_map<Digest, int> children_;             ///< by parent, kept or not; never 0
  std::set<std::pair<PageOrder::Time, Digest>> leaves_;  ///< (until, page), the first out first
  PageOrder order_;
};

}  // namespace efimd::engine
