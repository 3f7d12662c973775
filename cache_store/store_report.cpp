// The part of Store that looks through it and cleans it: lists, checks, purges.
#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "cache_store/store.h"

namespace efimd::store {

std::vector<DocumentUse> Store::documents() const {
  std::map<std::pair<SourceId, int>, std::size_t> pages;
  for (const Catalog::Row& row : catalog_.rows())
    for (const SourceId source : row.stored.sources) ++pages[{source, row.stored.place.arena_id}];
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
    if (Shelf* home = shelf(row.stored.place.arena_id)) home->free.push_back(row.stored.place.slot);
  }
  if (removed.empty()) return verified;
  if (const auto done = or_start_over(metadata_.change_pages(removed, {})); !done)
    return tl::unexpected(done.error());
  if (catalog_.size() == 0) verified.dropped = verified.pages;  // it was started over
  return verified;
}

Result<std::size_t> Store::erase_pages(std::span<const Digest> pages) {
  std::vector<std::int64_t> removed;
  // The slots are erased before their rows go, so a crash leaves only rows that are misses (ST-1).
  for (const Digest& page : pages) {
    const std::optional<PagePlace> place = catalog_.find(page);
    if (!place) continue;
    catalog_.remove(page);
    if (const auto erased = place->arena->erase(place->slot); !erased)
      return tl::unexpected(erased.error());
    removed.push_back(page_row_id(place->arena_id, place->slot));
    if (Shelf* home = shelf(place->arena_id)) home->free.push_back(place->slot);
  }
  if (const auto done = or_start_over(metadata_.change_pages(removed, {})); !done)
    return tl::unexpected(done.error());
  return removed.size();
}

Result<void> Store::erase_free_slots() {
  for (auto& [id, home] : shelves_)
    for (const std::uint32_t slot : home.free)
      if (slot < home.arena->slots())
        if (Result<void> erased = home.arena->erase(slot); !erased) return erased;
  return {};
}

std::set<SourceId> Store::sources_of(std::span<const Digest> pages) const {
  const std::set<Digest> wanted(pages.begin(), pages.end());
  std::set<SourceId> sources;
  for (const Catalog::Row& row : catalog_.rows())
    if (wanted.contains(row.page))
      sources.insert(row.stored.sources.begin(), row.stored.sources.end());
  return sources;
}

Result<Purged> Store::purge(const std::string& uri) {
  const auto found = sources_.find(uri);
  if (found == sources_.end()) return Purged{};
  const std::vector<Digest> behind = catalog_.pages_behind(found->second.id);
  const std::set<SourceId> sharing = sources_of(behind);
  const Result<std::size_t> pages = erase_pages(behind);
  if (!pages) return tl::unexpected(pages.error());
  // Their notes may name tokens of the document: those that their prompts show of it.
  for (const SourceId other : sharing)
    if (const auto done = or_start_over(metadata_.remove_notes(other)); !done)
      return tl::unexpected(done.error());
  if (const auto done = erase_free_slots(); !done) return tl::unexpected(done.error());
  const SourceId source = found->second.id;
  catalog_.set_pinned(source, false);
  catalog_.set_open(source, false);
  sources_.erase(found);
  if (const auto done = or_start_over(metadata_.remove_source(source)); !done)
    return tl::unexpected(done.error());
  if (const auto done = or_start_over(metadata_.compact()); !done)
    return tl::unexpected(done.error());
  return Purged{*pages};
}

Result<void> Store::erase_arena(int id) {
  std::vector<Digest> pages;
  for (const Catalog::Row& row : catalog_.rows())
    if (row.stored.place.arena_id == id) pages.push_back(row.page);
  Shelf& home = shelves_.at(id);
  for (std::uint32_t slot = home.arena->slots(); slot-- > 0;)
    if (Result<void> erased = home.arena->erase(slot); !erased) return erased;
  for (const Digest& page : pages) catalog_.remove(page);
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
  return Purged{before - catalog_.size()};
}

Result<Purged> Store::purge_all() {
  const std::size_t before = catalog_.size();
  while (!shelves_.empty())
    if (const auto done = erase_arena(shelves_.begin()->first); !done)
      return tl::unexpected(done.error());
  std::vector<SourceId> sources;
  for (const auto& [uri, source] : sources_) sources.push_back(source.id);
  sources_.clear();
  catalog_.clear();
  for (const SourceId source : sources)
    if (const auto done = or_start_over(metadata_.remove_source(source)); !done)
      return tl::unexpected(done.error());
  if (const auto done = or_start_over(metadata_.compact()); !done)
    return tl::unexpected(done.error());
  return Purged{before};
}

}  // namespace efimd::store
