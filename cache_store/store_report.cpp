// The part of Store that looks through it and cleans it: lists, checks, purges.
#include <algorithm>
#include <map>
#include <numeric>
#include <system_error>
#include <utility>

#include "cache_store/store.h"

namespace efimd::store {

std::vector<DocumentUse> Store::documents() const {
  const auto pages = catalog_.page_counts();
  std::vector<DocumentUse> documents;
  for (const auto& [uri, source] : sources_) {
    DocumentUse use;
    use.uri = uri;
    use.pinned = source.pinned;
    use.used_at_s = source.used_at_s;
    const std::size_t before = documents.size();
    for (const auto& [id, home] : shelves_) {
      const auto found = pages.find({source.id, id});
      if (found == pages.end()) continue;
      use.model_name = home.row.key.model_name;
      use.model = home.row.key.model;
      use.page_bytes = home.row.key.page_bytes;
      use.pages = found->second;
      documents.push_back(use);
    }
    if (documents.size() == before && source.pinned) documents.push_back(use);
  }
  return documents;
}

std::map<std::string, std::size_t> Store::page_counts() const {
  std::map<std::string, std::size_t> counts;
  const auto by_source = catalog_.source_counts();
  for (const auto& [uri, source] : sources_)
    if (const auto found = by_source.find(source.id); found != by_source.end())
      counts.emplace_hint(counts.end(), uri, found->second);
  return counts;
}

std::vector<std::string> Store::document_uris() const {
  std::vector<std::string> uris;
  for (const auto& [uri, source] : sources_) uris.push_back(uri);
  return uris;
}

Result<Verified> Store::verify() {
  Verified verified;
  std::vector<std::byte> bytes;
  std::vector<std::int64_t> removed;
  for (const Catalog::Row& row : catalog_.rows()) {
    bytes.resize(row.stored.place.arena->page_bytes());
    ++verified.pages;
    if (read(row.page, bytes) == Read::kDone) continue;
    ++verified.dropped;
    catalog_.remove(row.page);
    removed.push_back(page_row_id(row.stored.place.arena_id, row.stored.place.slot));
    if (Shelf* home = shelf(row.stored.place.arena_id)) home->give_back(row.stored.place.slot);
  }
  if (removed.empty()) return verified;
  if (const auto done = or_start_over(metadata_.change_pages(removed, {})); !done)
    return tl::unexpected(done.error());
  if (catalog_.size() == 0) verified.dropped = verified.pages;  // it was started over
  return verified;
}

Result<std::vector<std::int64_t>> Store::erase_pages(std::span<const Digest> pages) {
  std::vector<std::int64_t> rows;
  std::map<int, std::vector<std::uint32_t>> slots;
  for (const Digest& page : pages) {
    const std::optional<PagePlace> place = catalog_.find(page);
    if (!place) continue;
    catalog_.remove(page);
    rows.push_back(page_row_id(place->arena_id, place->slot));
    slots[place->arena_id].push_back(place->slot);
  }
  // The slots are erased before their rows go, so a crash leaves only rows that are misses (ST-1).
  Result<void> all;
  for (const auto& [id, erased] : slots) {
    Shelf* home = shelf(id);
    if (home == nullptr) continue;
    Result<void> done = home->arena->erase(erased);
    home->free.insert(home->free.end(), erased.begin(), erased.end());
    if (done) continue;
    home->unerased.insert(erased.begin(), erased.end());
    if (all) all = std::move(done);
  }
  if (all) return rows;
  // The next purge erases what is left: it finds free slots, not the pages.
  static_cast<void>(metadata_.change_pages(rows, {}));
  return tl::unexpected(all.error());
}

Result<void> Store::erase_free_slots() {
  for (auto& [id, home] : shelves_) {
    std::vector<std::uint32_t> slots(home.unerased.begin(), home.unerased.end());
    std::erase_if(slots, [end = home.arena->slots()](std::uint32_t slot) { return slot >= end; });
    if (Result<void> erased = home.arena->erase(slots); !erased) return erased;
    home.unerased.clear();
  }
  return {};
}

Result<Purged> Store::purge(std::span<const std::string> uris) {
  Metadata::Removal removal;
  std::vector<Digest> behind;
  for (const std::string& uri : uris) {
    const auto found = sources_.find(uri);
    if (found == sources_.end()) continue;
    removal.sources.push_back(found->second.id);
    const std::vector<Digest> pages = catalog_.pages_behind(found->second.id);
    behind.insert(behind.end(), pages.begin(), pages.end());
  }
  if (removal.sources.empty()) return Purged{};
  // Their notes may name tokens of the documents: those that their prompts show of them.
  removal.notes = catalog_.sources_of(behind);
  // First, as a purge that goes on after a failure does not find the pages any more. If it fails: again below.
  static_cast<void>(metadata_.remove({.notes = removal.notes}));
  Result<std::vector<std::int64_t>> rows = erase_pages(behind);
  if (!rows) return tl::unexpected(rows.error());
  removal.pages = std::move(*rows);
  if (const auto done = erase_free_slots(); !done) return tl::unexpected(done.error());
  for (const SourceId source : removal.sources) {
    catalog_.set_pinned(source, false);
    catalog_.set_open(source, false);
    catalog_.keep_longer(source, 0);
  }
  for (const std::string& uri : uris) sources_.erase(uri);
  if (const auto done = or_start_over(metadata_.remove(removal)); !done)
    return tl::unexpected(done.error());
  if (const auto done = or_start_over(metadata_.compact()); !done)
    return tl::unexpected(done.error());
  return Purged{removal.pages.size()};
}

Result<void> Store::erase_arena(int id) {
  Shelf& home = shelves_.at(id);
  // Nobody may find a page whose slot is overwritten: it would count as damaged.
  std::vector<std::int64_t> rows;
  for (const Catalog::Row& row : catalog_.rows()) {
    if (row.stored.place.arena_id != id) continue;
    catalog_.remove(row.page);
    rows.push_back(page_row_id(id, row.stored.place.slot));
    home.give_back(row.stored.place.slot);
  }
  std::vector<std::uint32_t> slots(home.arena->slots());
  std::iota(slots.begin(), slots.end(), 0U);
  if (Result<void> erased = home.arena->erase(slots); !erased) {
    // The next purge erases what is left: it finds the arena's slots, not the pages.
    static_cast<void>(metadata_.change_pages(rows, {}));
    return erased;
  }
  std::error_code ignored;
  std::filesystem::remove(arena_file(id), ignored);
  shelves_.erase(id);
  return or_start_over(metadata_.remove_arena(id));
}

Result<Purged> Store::purge_model(std::string_view name) {
  const std::size_t before = catalog_.size();
  std::vector<int> arenas;
  for (const auto& [id, home] : shelves_)
    if (!name.empty() &&
        (home.row.key.model_name == name || home.row.key.model.hex().starts_with(name)))
      arenas.push_back(id);
  if (arenas.empty())
    return fail(Fault::kNotFound, "the store has nothing of a model " + std::string(name),
                "'efimd cache list' names the models in it");
  for (const int id : arenas)
    if (const auto done = erase_arena(id); !done) return tl::unexpected(done.error());
  if (const auto done = or_start_over(metadata_.compact()); !done)
    return tl::unexpected(done.error());
  return Purged{before - catalog_.size()};
}

Result<Purged> Store::purge_all() {
  const std::size_t before = catalog_.size();
  while (!shelves_.empty())
    if (const auto done = erase_arena(shelves_.begin()->first); !done)
      return tl::unexpected(done.error());
  Metadata::Removal removal;
  for (const auto& [uri, source] : sources_) removal.sources.push_back(source.id);
  sources_.clear();
  catalog_.clear();
  if (const auto done = or_start_over(metadata_.remove(removal)); !done)
    return tl::unexpected(done.error());
  half_life_ = 0;
  if (const auto done = or_start_over(metadata_.set_counter(kHalfLifeCounter, 0)); !done)
    return tl::unexpected(done.error());
  if (const auto done = or_start_over(metadata_.compact()); !done)
    return tl::unexpected(done.error());
  return Purged{before};
}

}  // namespace efimd::store
