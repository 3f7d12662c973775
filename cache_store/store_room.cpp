// The part of Store that finds room for a page: the budget, what is given up for it, and file systems that
// give no blocks back, or end at a quota that they do not tell.
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <functional>
#include <set>
#include <system_error>
#include <utility>

#include "cache_store/store.h"

namespace efimd::store {

namespace {

/// More pages than this are not remembered as left out.
constexpr std::size_t kLeftOutMax = std::size_t{1} << 16;
/// Pages that are given up for one that a quota refuses. In place of one of them it needs no new blocks, except
/// on a file system that never overwrites.
constexpr int kGivenUpMax = 4;

std::size_t file_bytes(const std::filesystem::path& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  return error ? 0 : static_cast<std::size_t>(bytes);
}

}  // namespace

std::size_t Store::disk_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [id, home] : shelves_) bytes += home.arena->disk_bytes();
  return bytes;
}

std::size_t Store::database_bytes() const {
  std::size_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) bytes += file_bytes(database_file().native() + suffix);
  return bytes;
}

std::size_t Store::bytes_allowed() const {
  const std::size_t metadata = std::max(kMetadataBytes, database_bytes());
  const std::size_t budget = settings_.budget_bytes - std::min(settings_.budget_bytes, metadata);
  struct statvfs info {};
  if (::statvfs(settings_.folder.c_str(), &info) != 0) return budget;
  const std::size_t block = info.f_frsize;
  const std::size_t left = info.f_blocks * block / kDiskShareLeft;
  const std::size_t available = info.f_bavail * block;
  return std::min(budget, disk_bytes() + available - std::min(available, left));
}

void Store::left_out(const Digest& page) {
  if (!std::exchange(no_room_told_, true))
    tell(
        fmt::format("the disk budget of {} MiB has no room for another page; raise cache.disk_mb, "
                    "or unpin files",
                    settings_.budget_bytes >> 20U));
  if (left_out_.size() >= kLeftOutMax) left_out_.clear();
  left_out_.insert(page);
}

Store::Shelf* Store::give_up_one(Batch& batch, const std::optional<Digest>& but) {
  const std::optional<Digest> victim = catalog_.victim();
  if (!victim || victim == but) return nullptr;
  const PagePlace place = *catalog_.find(*victim);
  catalog_.remove(*victim);
  batch.removed.push_back(page_row_id(place.arena_id, place.slot));
  Shelf* home = shelf(place.arena_id);  // a page of the catalog has one
  home->give_back(place.slot);
  return home;
}

std::optional<std::uint32_t> Store::take_slot(Shelf& home, const NewPage& page, Batch& batch) {
  const std::uint32_t slots = home.arena->slots();
  while (!home.free.empty() && home.free.back() >= slots) home.take();  // they were cut off
  // A free slot may be a hole: taking it grows the file as a new one does, so both are counted so.
  const auto has_blocks = [&] {
    return !home.free.empty() && home.arena->holds_data(home.free.back());
  };
  const std::size_t allowed = bytes_allowed();
  while (!has_blocks() && disk_bytes() + home.arena->slot_bytes() > allowed) {
    if (page.parent && left_out_.contains(*page.parent)) return std::nullopt;
    Shelf* const other = give_up_one(batch, batch.base_of(page));
    if (other == nullptr) return std::nullopt;
    if (other == &home) break;  // its slot is taken next, without growing
    if (!other->arena->release(other->free.back()) && !pack(*other, batch)) return std::nullopt;
  }
  while (!home.free.empty())
    if (const std::uint32_t slot = home.take(); slot < slots) return slot;
  if (slots >= Arena::kSlotsMax) return std::nullopt;
  return slots;
}

Result<std::uint32_t> Store::write(Shelf& home, std::uint32_t slot, const NewPage& page,
                                   Batch& batch) {
  for (int given_up = 0;; ++given_up) {
    const Result<bool> written = home.arena->write(slot, page.bytes);
    if (written && *written) return slot;
    home.give_back(slot);
    if (!written) return tl::unexpected(written.error());
    Shelf* const other = given_up < kGivenUpMax ? give_up_one(batch, batch.base_of(page)) : nullptr;
    if (other == nullptr)
      return fail(Fault::kIo,
                  home.arena->file().string() + ": its file system is full, or your quota of it",
                  "make room there, or set EFIMD_CACHE_DIR");
    if (other != &home) other->arena->release(other->free.back());
    slot = home.take();
  }
}

Result<void> Store::fit_budget() {
  Batch batch;
  std::set<Shelf*> unpacked;
  std::size_t unpacked_bytes = 0;
  while (disk_bytes() - std::min(disk_bytes(), unpacked_bytes) > bytes_allowed()) {
    Shelf* const home = give_up_one(batch);
    if (home == nullptr) break;
    if (home->arena->release(home->free.back())) continue;
    unpacked.insert(home);
    unpacked_bytes += home->arena->slot_bytes();
  }
  for (Shelf* const home : unpacked)
    if (Result<void> packed = pack(*home, batch); !packed) return packed;
  if (batch.removed.empty()) return {};
  return metadata_.change_pages(batch.removed, {});
}

Result<void> Store::pack(Shelf& home, Batch& batch) {
  // What was given up goes first: its row would name the slot of a page that is moved there.
  if (Result<void> done = metadata_.change_pages(std::exchange(batch.removed, {}), {}); !done)
    return done;
  std::vector<Catalog::Row> rows = catalog_.rows();
  std::erase_if(rows,
                [&](const Catalog::Row& row) { return row.stored.place.arena_id != home.row.id; });
  const auto end = static_cast<std::uint32_t>(rows.size());
  std::unordered_set<std::uint32_t> used;
  for (const Catalog::Row& row : rows) used.insert(row.stored.place.slot);
  std::vector<std::int64_t> removed;
  std::vector<PageRow> moved;
  std::vector<std::byte> bytes(home.arena->page_bytes());
  std::uint32_t free = 0;
  for (Catalog::Row& row : rows) {
    StoredPage& stored = row.stored;
    if (stored.place.slot < end) continue;
    while (used.contains(free)) ++free;
    removed.push_back(page_row_id(home.row.id, stored.place.slot));
    if (read(row.page, bytes) != Read::kDone) continue;
    PageRow made{
        home.row.id, free, row.page, stored.parent, 0, stored.last_use, std::move(stored.sources)};
    made.checksum = checksum_of(bytes, made);
    const Result<bool> written = home.arena->write(made.slot, bytes);
    if (!written) return tl::unexpected(written.error());
    if (!*written) continue;  // a file system that never overwrites is full: the page is lost
    ++free;
    moved.push_back(std::move(made));
  }
  if (Result<void> synced = home.arena->sync(); !synced) return synced;  // ST-1: before the rows
  if (Result<void> done = metadata_.change_pages(removed, moved); !done) return done;
  for (const Catalog::Row& row : rows)
    if (row.stored.place.slot >= end) catalog_.remove(row.page);
  for (PageRow& row : moved) add_to_catalog(home, std::move(row));
  home.free.clear();
  home.unerased.clear();
  for (; free < end; ++free)
    if (!used.contains(free)) home.give_back(free);
  home.arena->cut(end);
  return {};
}

}  // namespace efimd::store
