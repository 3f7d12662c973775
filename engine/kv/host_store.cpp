#include "engine/kv/host_store.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/wipe.h"

namespace efimd::engine {

bool HostStore::holds(const Digest& page) const {
  return pages_.contains(page) || (behind_ && behind_->holds(page));
}

void HostStore::want(std::span<const Digest> pages) {
  if (!behind_) return;
  std::vector<Digest> elsewhere;
  std::ranges::copy_if(pages, std::back_inserter(elsewhere),
                       [&](const Digest& page) { return !pages_.contains(page); });
  if (!elsewhere.empty()) behind_->want(elsewhere);
}

std::optional<std::vector<std::byte>> HostStore::load(const Digest& page,
                                                      std::chrono::microseconds patience,
                                                      const std::stop_token& stop) {
  const auto found = pages_.find(page);
  if (found == pages_.end()) return behind_ ? behind_->load(page, patience, stop) : std::nullopt;
  touch(page, found->second);
  return found->second.page.bytes;
}

std::chrono::microseconds HostStore::load_time(const Digest& page) const {
  if (!behind_ || pages_.contains(page)) return std::chrono::microseconds(0);
  return behind_->load_time(page);
}

bool HostStore::takes_page(Leaving leaving) const {
  const bool disk_takes = behind_ && behind_->is_usable() && behind_->takes_page(leaving);
  if (disk_takes || budget_bytes_ == 0) return disk_takes;
  // One that stays on the device waits for the disk, so that it comes to both.
  return leaving == Leaving::kYes || !behind_ || !behind_->is_usable();
}

bool HostStore::write(PageToStore page) {
  bool taken = false;
  if (behind_ && !behind_->holds(page.page)) taken = behind_->write(page);
  if (page.bytes.size() > budget_bytes_ || pages_.contains(page.page)) return taken;
  keep(std::move(page));
  return true;
}

void HostStore::add_sources(const Digest& page, std::span<const SourceId> sources) {
  const auto found = pages_.find(page);
  if (found != pages_.end()) {
    std::vector<SourceId>& known = found->second.page.sources;
    std::ranges::copy_if(sources, std::back_inserter(known), [&](SourceId source) {
      return std::ranges::find(known, source) == known.end();
    });
    if (leaves_.erase({found->second.until, page}) > 0) offer(page, found->second);
  }
  if (!behind_) return;
  if (behind_->holds(page)) {
    behind_->add_sources(page, sources);
  } else if (found != pages_.end() && behind_->takes_page(Leaving::kNo)) {
    behind_->write(found->second.page);  // it came when the disk took none
  }
}

void HostStore::visited(SourceId source, int longer) {
  const int before = order_.longer_of(source);
  order_.visited(source, longer);
  if (order_.longer_of(source) != before)
    for (auto& [identity, kept] : pages_) {
      const std::vector<SourceId>& sources = kept.page.sources;
      if (std::ranges::find(sources, source) != sources.end() &&
          leaves_.erase({kept.until, identity}) > 0)
        offer(identity, kept);
    }
  if (behind_) behind_->visited(source, longer);
}

void HostStore::forget(SourceId source) {
  std::vector<Digest> doomed;
  for (const auto& [identity, kept] : pages_)
    if (std::ranges::find(kept.page.sources, source) != kept.page.sources.end())
      doomed.push_back(identity);
  if (!doomed.empty()) add_followers(doomed);
  for (const Digest& page : doomed) forgotten_.push_back(take_out(pages_.find(page)));
  order_.forget(source);
  if (behind_) behind_->forget(source);
}

void HostStore::add_followers(std::vector<Digest>& pages) const {
  std::unordered_map<Digest, std::vector<Digest>> followers;
  for (const auto& [identity, kept] : pages_)
    if (kept.page.parent) followers[*kept.page.parent].push_back(identity);
  std::unordered_set<Digest> seen(pages.begin(), pages.end());
  for (std::size_t at = 0; at < pages.size(); ++at)
    if (const auto found = followers.find(pages[at]); found != followers.end())
      for (const Digest& page : found->second)
        if (seen.insert(page).second) pages.push_back(page);
}

bool HostStore::overwrite_some() {
  for (std::size_t bytes = 0; bytes < kOverwrittenBytes && !forgotten_.empty();) {
    bytes += forgotten_.back().size();
    wipe(forgotten_.back());
    forgotten_.pop_back();
  }
  return !forgotten_.empty() || (behind_ && behind_->overwrite_some());
}

void HostStore::clear() {
  for (auto& [identity, kept] : pages_) wipe(kept.page.bytes);
  for (std::vector<std::byte>& bytes : forgotten_) wipe(bytes);
  forgotten_.clear();
  pages_.clear();
  children_.clear();
  leaves_.clear();
  used_bytes_ = 0;
}

void HostStore::keep(PageToStore page) {
  const Digest identity = page.page;
  if (page.parent)  // last to go for its own child
    if (const auto parent = pages_.find(*page.parent); parent != pages_.end())
      touch(*page.parent, parent->second);
  while (used_bytes_ + page.bytes.size() > budget_bytes_ && !leaves_.empty())
    drop(pages_.find(leaves_.begin()->second));
  used_bytes_ += page.bytes.size();
  if (page.parent) {
    if (const auto parent = pages_.find(*page.parent);
        parent != pages_.end() && !has_children(*page.parent))
      leaves_.erase({parent->second.until, *page.parent});
    ++children_[*page.parent];
  }
  Kept& kept = pages_.emplace(identity, Kept{std::move(page), order_.use()}).first->second;
  if (!has_children(identity)) offer(identity, kept);
}

void HostStore::touch(const Digest& page, Kept& kept) {
  const bool leaf = leaves_.erase({kept.until, page}) > 0;
  kept.last_use = order_.use();
  if (leaf) offer(page, kept);
}

void HostStore::offer(const Digest& page, Kept& kept) {
  kept.until = order_.until(kept.last_use, kept.page.sources);
  leaves_.emplace(kept.until, page);
}

void HostStore::drop(Pages::iterator at) {
  std::vector<std::byte> bytes = take_out(at);
  wipe(bytes);
}

std::vector<std::byte> HostStore::take_out(Pages::iterator at) {
  auto& [identity, kept] = *at;
  used_bytes_ -= kept.page.bytes.size();
  leaves_.erase({kept.until, identity});
  if (kept.page.parent) {
    const auto children = children_.find(*kept.page.parent);
    if (--children->second == 0) {
      children_.erase(children);
      if (const auto parent = pages_.find(*kept.page.parent); parent != pages_.end())
        offer(parent->first, parent->second);
    }
  }
  std::vector<std::byte> bytes = std::move(kept.page.bytes);
  pages_.erase(at);
  return bytes;
}

}  // namespace efimd::engine
