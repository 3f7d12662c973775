#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "cache_store/arena.h"
#include "cache_store/catalog.h"
#include "cache_store/metadata.h"

namespace efimd::store {

/// A page to keep. `sources` are the URIs of the documents whose text it holds; at least one.
struct NewPage {
  Digest page;
  std::optional<Digest> parent;
  std::vector<std::string> sources;
  std::span<const std::byte> bytes;
};

/// The store's pages of one document under one model, in numbers.
struct DocumentUse {
  std::string uri;
  std::string model_name;
  Digest model;
  std::size_t page_bytes = 0;
  std::size_t pages = 0;
  bool pinned = false;
  std::int64_t used_at_s = 0;  ///< since 1970; 0: never
};

struct StoreUse {
  std::size_t budget_bytes = 0;
  std::size_t disk_bytes = 0;
  std::size_t pages = 0;
};

/// How the user returned to documents, as visit() was told.
struct Visits {
  struct Document {
    std::uint64_t last = 0;  ///< number of its last visit
    int longer = 0;
  };
  std::uint64_t count = 0;
  std::int64_t half_life = 0;  ///< the last one; 0: there was none
  std::map<std::string, Document> documents = {};
};

struct Verified {
  std::size_t pages = 0;    ///< read and checked
  std::size_t dropped = 0;  ///< of them damaged, and removed
};

struct Purged {
  std::size_t pages = 0;
};

/// KV pages on disk by digest, within a budget. schema.h has its invariants, ST-1 to ST-3.
///
/// It knows no tokens and no editor: a page is bytes with a digest, a parent and its documents.
///
/// Thread: holds(), page_bytes(), will_read() and read() from any; the rest from one, the disk
/// thread.  Owns: the folder, by a lock in it.
/// Limits: budget_bytes, files and database together; kDiskShareLeft of the file system stays free.
/// Fails: open() if the folder cannot be used (kIo) or another process uses it (kNotReady). The
/// rest fails with kIo if writing does. Drops a damaged part and reports it through `tell`.
class Store {
 public:
  /// This share of the file system stays free for others.
  static constexpr std::size_t kDiskShareLeft = 20;
  /// Taken from the budget for the database; more if it is larger.
  static constexpr std::size_t kMetadataBytes = std::size_t{2} << 20;
  /// Notes may have this much, or a share of the budget if that is more. Longer unused ones go when the
  /// store is opened.
  static constexpr std::size_t kNotesBytesMin = std::size_t{1} << 20;
  static constexpr std::size_t kNotesShare = 1024;
  /// Larger pages are not kept.
  static constexpr std::size_t kPageBytesMax = std::size_t{64} << 20;
  /// Documents that are remembered. Past the limit, those without pages are forgotten, oldest
  /// first.
  static constexpr std::size_t kSourcesMax = 8192;

  struct Settings {
    std::filesystem::path folder;
    std::size_t budget_bytes = 0;
    /// Called on the thread that found it, once for each thing that went wrong.
    std::function<void(const std::string&)> tell = {};
  };
  static Result<std::unique_ptr<Store>> open(Settings settings);
  ~Store();
  /// The last call of the disk thread; holds() and read() still work.
  void close_database() { metadata_ = {}; }

  /// Whether all open files are still those in its folder. False if the folder was removed, moved,
  /// unmounted or replaced, or if a failure left nothing open. Then all calls find and keep
  /// nothing.
  bool is_in_place() const;
  /// Closes everything and opens the folder that has the name now; fails as open() does.
  Result<void> reopen();

  bool holds(const Digest& page) const { return catalog_.holds(page); }
  /// nullopt if it is not there.
  std::optional<std::size_t> page_bytes(const Digest& page) const;
  /// Announces that the page will be read soon, so that the system may begin now.
  void will_read(const Digest& page) const;
  enum class Read { kDone, kMissing, kDamaged };
  /// Fills `bytes` with the page's and checks them against its checksum. kDamaged: drop() it.
  Read read(const Digest& page, std::span<std::byte> bytes) const;

  /// The arena of `key`; makes it if it is not there.
  Result<int> use_arena(const ArenaKey& key);
  /// Keeps pages, parents before children, and evicts others for them (Catalog's order). Skips
  /// pages for which there is no room. Returns how many were kept.
  Result<std::size_t> keep(int arena, std::span<const NewPage> pages);
  /// Says that a page that is there holds text of this document, too.
  Result<void> add_source(const Digest& page, const std::string& uri);
  Result<void> drop(const Digest& page);

  /// Notes that the document and all its pages were used now. Writes what visit() said of it, too.
  Result<void> use(const std::string& uri);
  /// A visit of the document begins. Its pages are kept `longer` visits longer than others. Remembers
  /// both, if the store knows the document, and `half_life`, a number of the caller's own. Somebody
  /// waits for an answer then, so that the next use() writes it.
  void visit(const std::string& uri, int longer, std::int64_t half_life);
  /// Of documents that were used.
  Visits visits() const;
  /// Pages of open documents are evicted last.
  void set_open(const std::string& uri, bool open);
  /// Pages of pinned documents are never evicted.
  Result<void> pin(const std::string& uri, bool pinned);

  /// The notes on documents (Metadata::kNoteBytesMax), by URI.
  Result<std::map<std::string, std::string>> notes(const Digest& model);
  Result<void> set_note(const std::string& uri, const Digest& model, std::string_view note);

  /// Removes the notes that are `unwanted`, under every model.
  Result<void> forget_notes(const std::function<bool(std::string_view)>& unwanted);

  /// Removes documents with their pages and all pages that follow them, and the notes of those that had
  /// a part in these. Overwrites their slots and every free slot, because pages of them may have been
  /// there. Unknown documents are passed over.
  Result<Purged> purge(std::span<const std::string> uris);
  Result<Purged> purge(const std::string& uri) { return purge({&uri, 1}); }
  /// Removes the models whose name is `name`, or whose digest begins with it, with their arenas and the
  /// notes on documents under them.
  Result<Purged> purge_model(std::string_view name);
  Result<Purged> purge_all();

  /// Reads and checks everything; drops what is damaged.
  Result<Verified> verify();
  std::vector<DocumentUse> documents() const;
  std::vector<std::string> document_uris() const;
  /// Of each document that has any. Cheaper than documents().
  std::map<std::string, std::size_t> page_counts() const;
  StoreUse usage() const;

  Result<std::int64_t> counter(std::string_view name) { return metadata_.counter(name); }
  Result<void> set_counter(std::string_view name, std::int64_t value) {
    return metadata_.set_counter(name, value);
  }

 private:
  /// An arena with its slots that hold no page.
  struct Shelf {
    ArenaRow row;
    std::shared_ptr<Arena> arena;
    std::vector<std::uint32_t> free = {};  ///< last in, first out
    /// Of these, those in which a page's bytes may still be.
    std::unordered_set<std::uint32_t> unerased = {};

    /// A slot whose page is gone.
    void give_back(std::uint32_t slot) {
      free.push_back(slot);
      unerased.insert(slot);
    }
    std::uint32_t take() {
      const std::uint32_t slot = free.back();
      free.pop_back();
      unerased.erase(slot);
      return slot;
    }
  };
  /// The work of one keep() so far.
  struct Batch {
    std::vector<std::int64_t> removed;
    std::vector<PageRow> added;
    /// The page of the store that each of these follows, over others of the batch.
    std::unordered_map<Digest, Digest> bases;

    std::optional<Digest> base_of(const NewPage& page) const {
      if (!page.parent) return std::nullopt;
      const auto found = bases.find(*page.parent);
      return found == bases.end() ? page.parent : found->second;
    }
  };

  explicit Store(Settings settings) : settings_(std::move(settings)) {}
  std::filesystem::path database_file() const { return settings_.folder / "store.db"; }
  std::filesystem::path arena_file(int id) const {
    return settings_.folder / (std::to_string(id) + ".kv");
  }
  void tell(const std::string& message) const;
  std::filesystem::path lock_file() const { return settings_.folder / "lock"; }
  Result<void> open_folder();
  Result<void> lock();
  /// Opens what is there; nothing is open if it fails. kBadInput if it must be started over.
  Result<void> load();
  Result<void> load_parts();
  void let_go();
  Result<void> start_over(const std::string& reason);
  Result<void> load_arena(const ArenaRow& row);
  Result<void> load_pages();
  Result<void> load_sources();
  Result<void> forget_old_sources();
  Result<void> forget_old_notes();
  void remove_stray_files();
  /// Passes `result` on. Starts a damaged database over. Then a change counts as done, because its
  /// row is gone, and a question gives kIo.
  Result<void> or_start_over(Result<void> result);
  template <class T>
  Result<T> or_start_over(Result<T> result);

  static std::uint64_t checksum_of(std::span<const std::byte> bytes, const PageRow& row);
  /// Lets read() find a page that is on the disk and in the database.
  void add_to_catalog(const Shelf& home, PageRow row);
  Shelf* shelf(int id);
  const Shelf* shelf(int id) const;
  Result<SourceId> source_of(const std::string& uri);
  std::size_t bytes_allowed() const;
  std::size_t disk_bytes() const;
  std::size_t database_bytes() const;
  /// A slot of `shelf` within the budget; nullopt if there is no room.
  std::optional<std::uint32_t> take_slot(Shelf& shelf, const NewPage& page, Batch& batch);
  /// Writes the page into the slot; if the file system has no room for that, into that of a page that is
  /// given up. Returns the slot.
  Result<std::uint32_t> write(Shelf& shelf, std::uint32_t slot, const NewPage& page, Batch& batch);
  /// There was no room for it.
  void left_out(const Digest& page);
  /// Evicts the next page; its shelf, or null if none may be evicted. `but` is not: its child is to be kept,
  /// which is of no use without it.
  Shelf* give_up_one(Batch& batch, const std::optional<Digest>& but = std::nullopt);
  /// For a file system that gives no blocks back inside a file: moves the pages at the file's end into its
  /// free slots, and cuts it off behind them. Removes the batch's removed rows first.
  Result<void> pack(Shelf& shelf, Batch& batch);
  Result<void> put(Shelf& shelf, const NewPage& page, Batch& batch);
  Result<void> finish(Shelf& shelf, Batch& batch);
  Result<void> fit_budget();
  /// Takes pages out of the catalog and erases their slots; the rows that are to be removed.
  Result<std::vector<std::int64_t>> erase_pages(std::span<const Digest> pages);
  Result<void> erase_free_slots();
  Result<void> erase_arena(int id);

  const Settings settings_;
  FileHandle lock_;
  Metadata metadata_;  ///< closed if a failure left it so
  Catalog catalog_;
  std::map<int, Shelf> shelves_;
  std::map<std::string, SourceRow, std::less<>> sources_;
  std::uint64_t uses_ = 0;
  std::int64_t half_life_ = 0;  ///< Visits::half_life
  bool no_room_told_ = false;
  /// Pages that had no room. What follows them gives up no other page, because nobody could use it.
  std::unordered_set<Digest> left_out_;
};

}  // namespace efimd::store
