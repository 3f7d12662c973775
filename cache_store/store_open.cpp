// The part of Store that opens its folder, loads what is there, and starts over what is damaged.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "cache_store/store.h"

namespace efimd::store {

namespace fs = std::filesystem;

Result<std::unique_ptr<Store>> Store::open(Settings settings) {
  std::unique_ptr<Store> store(new Store(std::move(settings)));
  if (const auto opened = store->open_folder(); !opened) return tl::unexpected(opened.error());
  return store;
}

Result<void> Store::open_folder() {
  if (auto made = make_private_folder(settings_.folder); !made) return made;
  if (auto locked = lock(); !locked) return locked;
  if (auto loaded = or_start_over(load()); !loaded) return loaded;
  return fit_budget();
}

bool Store::is_in_place() const {
  return store::is_in_place(lock_, lock_file()) && metadata_.is_in_place() &&
         std::ranges::all_of(shelves_,
                             [](const auto& each) { return each.second.arena->is_in_place(); });
}

Result<void> Store::reopen() {
  let_go();
  lock_ = {};
  return open_folder();
}

void Store::let_go() {
  metadata_ = {};
  catalog_.clear();
  shelves_.clear();
  sources_.clear();
  left_out_.clear();
}

Result<void> Store::lock() {
  const fs::path file = lock_file();
  Result<FileHandle> opened = open_private_file(file);
  if (!opened) return tl::unexpected(opened.error());
  lock_ = std::move(*opened);
  const Result<bool> locked = try_lock(lock_, file);
  if (!locked && locked.error().fault == Fault::kUnsupported) {
    tell(locked.error().what + ": two daemons that share it would spoil each other's pages");
    return {};
  }
  if (!locked) return tl::unexpected(locked.error());
  if (*locked) return {};
  return fail(Fault::kNotReady, settings_.folder.string() + ": another efimd uses it",
              "this one keeps nothing on disk; end the other, or set EFIMD_CACHE_DIR");
}

Result<void> Store::load() {
  Result<void> loaded = load_parts();
  if (!loaded) let_go();
  return loaded;
}

Result<void> Store::load_parts() {
  std::vector<std::string> notes;
  Result<Metadata> opened = Metadata::open(database_file(), notes);
  if (!opened) return tl::unexpected(opened.error());
  metadata_ = std::move(*opened);
  for (const std::string& note : notes) tell(note);
  if (auto done = load_sources(); !done) return done;
  const auto arenas = metadata_.arenas();
  if (!arenas) return tl::unexpected(arenas.error());
  for (const ArenaRow& row : *arenas)
    if (auto done = load_arena(row); !done) return done;
  if (auto done = load_pages(); !done) return done;
  remove_stray_files();
  return {};
}

Result<void> Store::start_over(const std::string& reason) {
  tell("the store is started over: " + reason);
  let_go();
  Metadata::remove(database_file());
  remove_stray_files();
  return load();
}

Result<void> Store::load_sources() {
  const auto rows = metadata_.sources();
  if (!rows) return tl::unexpected(rows.error());
  const auto half_life = metadata_.counter(kHalfLifeCounter);
  if (!half_life) return tl::unexpected(half_life.error());
  half_life_ = *half_life;
  for (const SourceRow& row : *rows) {
    uses_ = std::max(uses_, row.last_use);
    sources_.emplace(row.uri, row);
    catalog_.set_pinned(row.id, row.pinned);
    catalog_.keep_longer(row.id, static_cast<std::uint64_t>(row.longer) * kUsesPerVisit);
  }
  return {};
}

Result<void> Store::load_arena(const ArenaRow& row) {
  Result<Arena> arena = Arena::open(arena_file(row.id), row.key.page_bytes, row.nonce);
  if (!arena) return tl::unexpected(arena.error());
  shelves_[row.id] = {row, std::make_shared<Arena>(std::move(*arena))};
  return {};
}

Result<void> Store::load_pages() {
  auto rows = metadata_.pages();
  if (!rows) return tl::unexpected(rows.error());
  std::unordered_set<SourceId> known;
  std::map<SourceId, std::uint64_t> last_use;
  for (const auto& [uri, source] : sources_) last_use[source.id] = source.last_use;
  std::map<int, std::size_t> lost;  ///< pages of arenas that were gone or another generation's
  std::vector<std::int64_t> removed;
  std::map<int, std::set<std::uint32_t>> used;
  for (PageRow& row : *rows) {
    const Shelf* home = shelf(row.arena);
    if (home != nullptr && home->arena->fresh()) ++lost[row.arena];
    std::erase_if(row.sources, [&](SourceId source) { return !last_use.contains(source); });
    if (home == nullptr || home->arena->fresh() || row.slot >= home->arena->slots() ||
        row.sources.empty() || catalog_.holds(row.page)) {
      removed.push_back(page_row_id(row.arena, row.slot));
      continue;
    }
    for (const SourceId source : row.sources)
      row.last_use = std::max(row.last_use, last_use[source]);
    uses_ = std::max(uses_, row.last_use);
    used[row.arena].insert(row.slot);
    add_to_catalog(*home, std::move(row));
  }
  for (const auto& [arena, pages] : lost)
    tell(fmt::format("{}: is gone or not the store's; {} pages are lost",
                     arena_file(arena).string(), pages));
  for (auto& [id, home] : shelves_)
    for (std::uint32_t slot = home.arena->slots(); slot-- > 0;)
      if (!used[id].contains(slot)) home.give_back(slot);
  if (!removed.empty())
    if (auto done = metadata_.change_pages(removed, {}); !done) return done;
  if (auto done = forget_old_sources(); !done) return done;
  return forget_old_notes();
}

Result<void> Store::forget_old_notes() {
  const Result<bool> forgot =
      metadata_.limit_notes(std::max(kNotesBytesMin, settings_.budget_bytes / kNotesShare));
  Result<void> done;
  if (!forgot)
    done = tl::unexpected(forgot.error());
  else if (*forgot)
    done = metadata_.compact();
  // A full disk is no reason to do without the store: they go another time.
  return !done && done.error().fault == Fault::kBadInput ? done : Result<void>();
}

Result<void> Store::forget_old_sources() {
  if (sources_.size() <= kSourcesMax) return {};
  std::unordered_set<SourceId> in_use;
  for (const Catalog::Row& row : catalog_.rows())
    in_use.insert(row.stored.sources.begin(), row.stored.sources.end());
  std::vector<const SourceRow*> idle;
  for (const auto& [uri, source] : sources_)
    if (!source.pinned && !in_use.contains(source.id)) idle.push_back(&source);
  std::ranges::sort(idle, {}, [](const SourceRow* source) { return source->last_use; });
  idle.resize(std::min(idle.size(), sources_.size() - kSourcesMax));
  Metadata::Removal removal;
  for (const SourceRow* source : idle) {
    removal.sources.push_back(source->id);
    sources_.erase(std::string(source->uri));
  }
  return metadata_.remove(removal);
}

void Store::remove_stray_files() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(settings_.folder, error)) {
    const fs::path& file = entry.path();
    if (file.extension() != ".kv") continue;
    const bool known = std::ranges::any_of(
        shelves_, [&](const auto& each) { return arena_file(each.first) == file; });
    std::error_code ignored;
    if (!known) fs::remove(file, ignored);
  }
}

}  // namespace efimd::store
