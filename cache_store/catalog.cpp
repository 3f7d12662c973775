#include "cache_store/catalog.h"

#include <algorithm>
#include <utility>

namespace efimd::store {

bool Catalog::holds(const Digest& page) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(page);
}

std::optional<PagePlace> Catalog::find(const Digest& page) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(page);
  if (found == entries_.end()) return std::nullopt;
  return found->second.stored.place;
}

std::size_t Catalog::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::optional<Catalog::Order> Catalog::order_of(const Digest& page, const Entry& entry) const {
  const std::vector<SourceId>& sources = entry.stored.sources;
  const auto any_in = [&](const std::unordered_set<SourceId>& set) {
    return std::ranges::any_of(sources, [&](SourceId source) { return set.contains(source); });
  };
  if (!entry.children.empty() || any_in(pinned_)) return std::nullopt;
  std::uint64_t longer = 0;
  if (!longer_.empty())
    for (const SourceId source : sources)
      if (const auto found = longer_.find(source); found != longer_.end())
        longer = std::max(longer, found->second);
  return Order(any_in(open_), entry.stored.last_use + longer, page);
}

template <class Change>
void Catalog::reorder(const Digest& page, Entry& entry, Change change) {
  if (const auto before = order_of(page, entry)) order_.erase(*before);
  change();
  if (const auto after = order_of(page, entry)) order_.insert(*after);
}

void Catalog::add(const Digest& page, StoredPage stored) {
  if (entries_.contains(page)) return;
  for (const SourceId source : stored.sources) by_source_[source].insert(page);
  if (stored.parent) {
    if (const auto parent = entries_.find(*stored.parent); parent != entries_.end())
      reorder(parent->first, parent->second, [&] { parent->second.children.insert(page); });
    else
      orphans_[*stored.parent].insert(page);
  }
  Entry entry{std::move(stored), {}};
  if (auto waiting = orphans_.extract(page); !waiting.empty())
    entry.children = std::move(waiting.mapped());
  std::unique_lock lock(mutex_);
  const auto [added, fresh] = entries_.emplace(page, std::move(entry));
  lock.unlock();
  if (const auto order = order_of(page, added->second)) order_.insert(*order);
}

bool Catalog::remove(const Digest& page) {
  const auto found = entries_.find(page);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  if (const auto order = order_of(page, entry)) order_.erase(*order);
  for (const SourceId source : entry.stored.sources)
    if (const auto pages = by_source_.find(source); pages != by_source_.end()) {
      pages->second.erase(page);
      if (pages->second.empty()) by_source_.erase(pages);
    }
  if (entry.stored.parent) {
    const auto parent = entries_.find(*entry.stored.parent);
    if (parent != entries_.end()) {
      reorder(parent->first, parent->second, [&] { parent->second.children.erase(page); });
    } else if (const auto waiting = orphans_.find(*entry.stored.parent);
               waiting != orphans_.end()) {
      waiting->second.erase(page);
      if (waiting->second.empty()) orphans_.erase(waiting);
    }
  }
  if (!entry.children.empty()) orphans_.emplace(page, std::move(entry.children));
  const std::lock_guard lock(mutex_);
  entries_.erase(found);
  return true;
}

void Catalog::clear() {
  {
    const std::lock_guard lock(mutex_);
    entries_.clear();
  }
  orphans_.clear();
  by_source_.clear();
  order_.clear();
  open_.clear();
  pinned_.clear();
  longer_.clear();
}

bool Catalog::add_source(const Digest& page, SourceId source) {
  const auto found = entries_.find(page);
  if (found == entries_.end()) return false;
  std::vector<SourceId>& sources = found->second.stored.sources;
  if (std::ranges::find(sources, source) != sources.end()) return false;
  reorder(page, found->second, [&] { sources.push_back(source); });
  by_source_[source].insert(page);
  return true;
}

template <class Change>
void Catalog::reorder_all(SourceId source, Change change) {
  const auto pages = by_source_.find(source);
  if (pages == by_source_.end()) return;
  for (const Digest& page : pages->second) {
    Entry& entry = entries_.at(page);
    reorder(page, entry, [&] { change(entry.stored); });
  }
}

void Catalog::use(SourceId source, std::uint64_t time) {
  reorder_all(source, [&](StoredPage& stored) { stored.last_use = time; });
}

void Catalog::keep_longer(SourceId source, std::uint64_t uses) {
  const auto found = longer_.find(source);
  if ((found == longer_.end() ? 0 : found->second) == uses) return;
  change_order(source, [&] {
    if (uses == 0)
      longer_.erase(source);
    else
      longer_[source] = uses;
  });
}

void Catalog::set_open(SourceId source, bool open) { set_member(open_, source, open); }

void Catalog::set_pinned(SourceId source, bool pinned) { set_member(pinned_, source, pinned); }

template <class Change>
void Catalog::change_order(SourceId source, Change change) {
  const auto pages = by_source_.find(source);
  const auto each_order = [&](auto act) {
    if (pages == by_source_.end()) return;
    for (const Digest& page : pages->second)
      if (const auto order = order_of(page, entries_.at(page))) act(*order);
  };
  each_order([&](const Order& order) { order_.erase(order); });
  change();
  each_order([&](const Order& order) { order_.insert(order); });
}

void Catalog::set_member(std::unordered_set<SourceId>& set, SourceId source, bool member) {
  if (set.contains(source) == member) return;
  change_order(source, [&] {
    if (member) {
      set.insert(source);
    } else {
      set.erase(source);
    }
  });
}

bool Catalog::is_open(SourceId source) const { return open_.contains(source); }

std::optional<Digest> Catalog::victim() const {
  if (order_.empty()) return std::nullopt;
  return std::get<Digest>(*order_.begin());
}

std::vector<Digest> Catalog::pages_behind(SourceId source) const {
  const auto own = by_source_.find(source);
  if (own == by_source_.end()) return {};
  std::vector<Digest> pages(own->second.begin(), own->second.end());
  std::unordered_set<Digest> seen = own->second;
  for (std::size_t at = 0; at < pages.size(); ++at)
    for (const Digest& child : entries_.at(pages[at]).children)
      if (seen.insert(child).second) pages.push_back(child);
  return pages;
}

std::vector<SourceId> Catalog::sources_of(std::span<const Digest> pages) const {
  std::set<SourceId> sources;
  for (const Digest& page : pages)
    if (const auto found = entries_.find(page); found != entries_.end())
      sources.insert(found->second.stored.sources.begin(), found->second.stored.sources.end());
  return {sources.begin(), sources.end()};
}

std::map<std::pair<SourceId, int>, std::size_t> Catalog::page_counts() const {
  std::map<std::pair<SourceId, int>, std::size_t> counts;
  for (const auto& [source, pages] : by_source_)
    for (const Digest& page : pages) ++counts[{source, entries_.at(page).stored.place.arena_id}];
  return counts;
}

std::unordered_map<SourceId, std::size_t> Catalog::source_counts() const {
  std::unordered_map<SourceId, std::size_t> counts;
  for (const auto& [source, pages] : by_source_) counts.emplace(source, pages.size());
  return counts;
}

std::vector<Catalog::Row> Catalog::rows() const {
  std::vector<Row> rows;
  rows.reserve(entries_.size());
  for (const auto& [page, entry] : entries_) rows.push_back({page, entry.stored});
  return rows;
}

}  // namespace efimd::store
