#include "cache_store/store.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace efimd::store {

namespace fs = std::filesystem;

namespace {

std::uint64_t hash(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

/// Of the row's fields that are not the page's bytes: when one of them is damaged, so is the page.
std::uint64_t seed_of(const PageRow& row) {
  const std::optional<Digest>& parent = row.parent;
  const std::array<std::uint64_t, 6> fields = {
      static_cast<std::uint64_t>(page_row_id(row.arena, row.slot)),
      row.page.low,
      row.page.high,
      parent ? 1U : 0U,
      parent ? parent->low : 0,
      parent ? parent->high : 0};
  return hash(std::as_bytes(std::span(fields)), 0);
}

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Store::~Store() = default;

void Store::tell(const std::string& message) const {
  if (settings_.tell) settings_.tell(message);
}

Result<void> Store::or_start_over(Result<void> result) {
  if (result || result.error().fault != Fault::kBadInput) return result;
  return start_over(result.error().what);
}

template <class T>
Result<T> Store::or_start_over(Result<T> result) {
  if (result || result.error().fault != Fault::kBadInput) return result;
  if (const Result<void> fresh = start_over(result.error().what); !fresh)
    return tl::unexpected(fresh.error());
  return tl::unexpected(Error{Fault::kIo, result.error().what, "it was started over"});
}

Store::Shelf* Store::shelf(int id) {
  const auto found = shelves_.find(id);
  return found == shelves_.end() ? nullptr : &found->second;
}

const Store::Shelf* Store::shelf(int id) const {
  const auto found = shelves_.find(id);
  return found == shelves_.end() ? nullptr : &found->second;
}

std::uint64_t Store::checksum_of(std::span<const std::byte> bytes, const PageRow& row) {
  return hash(bytes, seed_of(row));
}

void Store::add_to_catalog(const Shelf& home, PageRow row) {
  const std::uint64_t seed = seed_of(row);
  catalog_.add(row.page, {{home.arena, row.arena, row.slot, row.checksum, seed},
                          row.parent,
                          std::move(row.sources),
                          row.last_use});
}

std::optional<std::size_t> Store::page_bytes(const Digest& page) const {
  const std::optional<PagePlace> place = catalog_.find(page);
  if (!place) return std::nullopt;
  return place->arena->page_bytes();
}

void Store::will_read(const Digest& page) const {
  if (const std::optional<PagePlace> place = catalog_.find(page))
    place->arena->will_read(place->slot);
}

Store::Read Store::read(const Digest& page, std::span<std::byte> bytes) const {
  const std::optional<PagePlace> place = catalog_.find(page);
  if (!place || bytes.size() != place->arena->page_bytes()) return Read::kMissing;
  if (place->arena->read(place->slot, bytes) && hash(bytes, place->seed) == place->checksum)
    return Read::kDone;
  // Its slot may have been given to another page while it was read.
  const std::optional<PagePlace> again = catalog_.find(page);
  const bool same = again && again->arena == place->arena && again->slot == place->slot &&
                    again->checksum == place->checksum;
  return same ? Read::kDamaged : Read::kMissing;
}

Result<int> Store::use_arena(const ArenaKey& key) {
  for (const auto& [id, home] : shelves_)
    if (home.row.key.model == key.model && home.row.key.kv_type == key.kv_type &&
        home.row.key.page_bytes == key.page_bytes)
      return id;
  if (key.page_bytes == 0 || key.page_bytes > kPageBytesMax)
    return fail(Fault::kUnsupported,
                fmt::format("KV pages of {} bytes are not kept on disk", key.page_bytes));
  const Result<ArenaRow> row = or_start_over(metadata_.add_arena(key));
  if (!row) return tl::unexpected(row.error());
  if (const Result<void> loaded = load_arena(*row); !loaded) return tl::unexpected(loaded.error());
  return row->id;
}

Result<SourceId> Store::source_of(const std::string& uri) {
  if (const auto known = sources_.find(uri); known != sources_.end()) return known->second.id;
  const Result<SourceRow> row = metadata_.add_source(uri);
  if (!row) return tl::unexpected(row.error());
  sources_.insert_or_assign(uri, *row);
  return row->id;
}

Result<void> Store::put(Shelf& home, const NewPage& page, Batch& batch) {
  const std::optional<std::uint32_t> slot = take_slot(home, page, batch);
  if (!slot) {
    left_out(page.page);
    return {};
  }
  left_out_.erase(page.page);
  if (const auto base = batch.base_of(page)) batch.bases.emplace(page.page, *base);
  PageRow row{home.row.id, *slot, page.page, page.parent, 0, ++uses_, {}};
  for (const std::string& uri : page.sources) {
    const Result<SourceId> source = source_of(uri);
    if (!source) {
      home.give_back(*slot);
      return tl::unexpected(source.error());
    }
    row.sources.push_back(*source);
  }
  const Result<std::uint32_t> written = write(home, *slot, page, batch);
  if (!written) return tl::unexpected(written.error());
  row.slot = *written;
  row.checksum = checksum_of(page.bytes, row);
  batch.added.push_back(std::move(row));
  return {};
}

Result<void> Store::finish(Shelf& home, Batch& batch) {
  if (Result<void> synced = home.arena->sync(); !synced) return synced;  // ST-1: before the rows
  if (Result<void> stored = metadata_.change_pages(batch.removed, batch.added); !stored)
    return stored;
  for (PageRow& row : batch.added) add_to_catalog(home, std::move(row));
  return {};
}

Result<std::size_t> Store::keep(int arena, std::span<const NewPage> pages) {
  Shelf* home = shelf(arena);
  if (home == nullptr) return fail(Fault::kNotFound, "the store's arena was purged");
  Batch batch;
  Result<void> done;
  std::unordered_set<Digest> seen;
  for (const NewPage& page : pages) {
    if (!done) break;
    if (page.sources.empty() || page.bytes.size() != home->arena->page_bytes() ||
        catalog_.holds(page.page) || !seen.insert(page.page).second)
      continue;
    done = put(*home, page, batch);
  }
  // Pages written before a failure stay.
  const std::size_t kept = batch.added.size();
  if (kept > 0 || !batch.removed.empty()) {
    std::vector<std::uint32_t> slots;
    for (const PageRow& row : batch.added) slots.push_back(row.slot);
    const Result<void> finished = finish(*home, batch);
    if (!finished)
      for (const std::uint32_t slot : slots) home->give_back(slot);
    if (done) done = finished;
  }
  if (done) return kept;
  return or_start_over<std::size_t>(tl::unexpected(done.error()));
}

Result<void> Store::add_source(const Digest& page, const std::string& uri) {
  const std::optional<PagePlace> place = catalog_.find(page);
  if (!place) return {};
  const Result<SourceId> source = or_start_over(source_of(uri));
  if (!source) return tl::unexpected(source.error());
  if (!catalog_.add_source(page, *source)) return {};
  return or_start_over(
      metadata_.add_page_source(page_row_id(place->arena_id, place->slot), *source));
}

Result<void> Store::drop(const Digest& page) {
  const std::optional<PagePlace> place = catalog_.find(page);
  if (!place) return {};
  catalog_.remove(page);
  if (Shelf* home = shelf(place->arena_id)) home->give_back(place->slot);
  const std::int64_t row = page_row_id(place->arena_id, place->slot);
  return or_start_over(metadata_.change_pages({&row, 1}, {}));
}

Result<void> Store::use(const std::string& uri) {
  const auto found = sources_.find(uri);
  if (found == sources_.end()) return {};
  found->second.last_use = ++uses_;
  found->second.used_at_s = now_s();
  catalog_.use(found->second.id, uses_);
  return or_start_over(metadata_.use_source(found->second, half_life_));
}

void Store::visit(const std::string& uri, int longer, std::int64_t half_life) {
  uses_ = (uses_ / kUsesPerVisit + 1) * kUsesPerVisit;
  left_out_.clear();  // the order changes
  half_life_ = half_life;
  const auto found = sources_.find(uri);
  if (found == sources_.end()) return;
  SourceRow& source = found->second;
  source.last_use = uses_;
  source.longer = std::clamp(longer, 0, kLongerMax);
  catalog_.keep_longer(source.id, static_cast<std::uint64_t>(source.longer) * kUsesPerVisit);
  catalog_.use(source.id, uses_);
}

Visits Store::visits() const {
  Visits visits{uses_ / kUsesPerVisit, half_life_};
  for (const auto& [uri, source] : sources_)
    if (source.last_use > 0)
      visits.documents.emplace(uri,
                               Visits::Document{source.last_use / kUsesPerVisit, source.longer});
  return visits;
}

void Store::set_open(const std::string& uri, bool open) {
  if (const auto found = sources_.find(uri); found != sources_.end())
    catalog_.set_open(found->second.id, open);
}

Result<void> Store::pin(const std::string& uri, bool pinned) {
  const Result<SourceId> source = or_start_over(source_of(uri));
  if (!source) return tl::unexpected(source.error());
  sources_.at(uri).pinned = pinned;
  catalog_.set_pinned(*source, pinned);
  return or_start_over(metadata_.pin_source(*source, pinned));
}

Result<std::map<std::string, std::string>> Store::notes(const Digest& model) {
  auto by_source = or_start_over(metadata_.notes(model));
  if (!by_source) return tl::unexpected(by_source.error());
  std::map<std::string, std::string> notes;
  for (const auto& [uri, source] : sources_)
    if (const auto found = by_source->find(source.id); found != by_source->end())
      notes.emplace(uri, std::move(found->second));
  return notes;
}

Result<void> Store::set_note(const std::string& uri, const Digest& model, std::string_view note) {
  if (note.size() > Metadata::kNoteBytesMax)
    return fail(Fault::kUnsupported, "a document's note is longer than the store keeps");
  // A purge may have come first: a document without a note need not be named.
  if (note.empty() && !sources_.contains(uri)) return {};
  const Result<SourceId> source = or_start_over(source_of(uri));
  if (!source) return tl::unexpected(source.error());
  return or_start_over(metadata_.set_note(*source, model, note));
}

Result<void> Store::forget_notes(const std::function<bool(std::string_view)>& unwanted) {
  return or_start_over(metadata_.remove_notes(unwanted));
}

StoreUse Store::usage() const {
  return {settings_.budget_bytes, disk_bytes() + database_bytes(), catalog_.size()};
}

}  // namespace efimd::store
