#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "cache_store/arena.h"
#include "cache_store/catalog.h"
#include "cache_store/database.h"

namespace efimd::store {

/// A page's row is named by the page's place.
constexpr std::int64_t page_row_id(int arena, std::uint32_t slot) {
  return (std::int64_t{arena} << 32) | slot;
}

struct ArenaRow {
  int id = 0;
  ArenaKey key;
  Digest nonce;
};

struct SourceRow {
  SourceId id = 0;
  std::string uri;
  bool pinned = false;
  std::uint64_t last_use = 0;  ///< counts uses
  std::int64_t used_at_s = 0;  ///< since 1970, for people
  int longer = 0;              ///< visits that it is kept longer than others
};

struct PageRow {
  int arena = 0;
  std::uint32_t slot = 0;
  Digest page;
  std::optional<Digest> parent;
  std::uint64_t checksum = 0;
  std::uint64_t last_use = 0;
  std::vector<SourceId> sources;
};

/// Uses are counted from 0 to this; a row with another number is damaged and counts as long unused.
inline constexpr std::int64_t kUsesMax = std::int64_t{1} << 62;
/// As many uses make a document as old as a visit of another one. Within a visit there are fewer.
inline constexpr std::uint64_t kUsesPerVisit = std::uint64_t{1} << 20;
/// A document is kept at most so many visits longer than others.
inline constexpr int kLongerMax = 1 << 20;
/// The counter of Visits::half_life.
inline constexpr char kHalfLifeCounter[] = "return_half_life";

/// The store's tables (schema.h): rows in, rows out, no policy.
///
/// Thread: disk. Fails with kBadInput if the database is damaged or has another schema (start it
/// over). Fails with kIo if it cannot be reached or written.
class Metadata {
 public:
  /// Opens or makes the database. Adds to `notes` what a user should know about it.
  static Result<Metadata> open(const std::filesystem::path& file, std::vector<std::string>& notes);
  /// Closed: every call fails with kIo.
  Metadata() = default;
  /// Whether it is open, and its file is still in its place.
  bool is_in_place() const { return database_.is_in_place(); }
  /// Removes the database's files.
  static void remove(const std::filesystem::path& file);

  Result<std::vector<ArenaRow>> arenas();
  Result<std::vector<SourceRow>> sources();
  Result<std::vector<PageRow>> pages();

  Result<ArenaRow> add_arena(const ArenaKey& key);
  /// With its pages, and with the notes under its model.
  Result<void> remove_arena(int arena);
  Result<SourceRow> add_source(std::string_view uri);
  /// Writes when it was used, how long it is kept, and Visits::half_life. All or nothing.
  Result<void> use_source(const SourceRow& source, std::int64_t half_life);
  Result<void> pin_source(SourceId source, bool pinned);

  /// All or nothing.
  Result<void> change_pages(std::span<const std::int64_t> removed, std::span<const PageRow> added);
  Result<void> add_page_source(std::int64_t page, SourceId source);
  /// All or nothing, and one wait for the disk.
  struct Removal {
    std::vector<std::int64_t> pages = {};
    std::vector<SourceId> notes = {};  ///< of these documents, under every model
    std::vector<SourceId> sources = {};
  };
  Result<void> remove(const Removal& removal);

  /// The note on a document under a model; a note longer than kNoteBytesMax is read as none.
  static constexpr std::size_t kNoteBytesMax = 65536;
  Result<std::map<SourceId, std::string>> notes(const Digest& model);
  Result<void> set_note(SourceId source, const Digest& model, std::string_view note);
  /// Removes the notes that are `unwanted`, under every model.
  Result<void> remove_notes(const std::function<bool(std::string_view)>& unwanted);
  /// Removes notes until they have at most so many bytes, those of the longest unused documents first. False
  /// if none had to go.
  Result<bool> limit_notes(std::size_t bytes_max);

  Result<std::int64_t> counter(std::string_view name);
  Result<void> set_counter(std::string_view name, std::int64_t value);
  /// Removes everything that was deleted from the files.
  Result<void> compact();

 private:
  explicit Metadata(Database database) : database_(std::move(database)) {}
  static Result<Metadata> open_with(const std::filesystem::path& file, const char* vfs,
                                    std::vector<std::string>& notes);
  Result<void> prepare_schema();
  Result<void> run_for_each(std::string_view sql, std::span<const std::int64_t> ids);
  Database database_;
};

}  // namespace efimd::store
