#include "cache_store/metadata.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "cache_store/private_file.h"
#include "cache_store/schema.h"

namespace efimd::store {

namespace fs = std::filesystem;

namespace {

/// SQLite writes the log back into the database when it has this many of its pages.
constexpr int kWalPages = 64;
constexpr char kUseSource[] = "UPDATE sources SET last_use = ?, used_at_s = ? WHERE id = ?";
constexpr char kKeepLonger[] = "INSERT OR REPLACE INTO returns (source, longer) VALUES (?, ?)";
constexpr char kDeletePage[] = "DELETE FROM pages WHERE id = ?";
constexpr char kDeleteNotesOfArena[] =
    "DELETE FROM notes WHERE model = (SELECT model FROM arenas WHERE id = ?)";

/// Rows of `sql`, each made by `row`, which returns nullopt for one to pass over.
template <class Row, class Make>
Result<std::vector<Row>> rows_of(Database& database, std::string_view sql, Make make) {
  Result<Statement> statement = database.prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  std::vector<Row> rows;
  for (;;) {
    const Result<bool> more = statement->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return rows;
    if (std::optional<Row> row = make(*statement)) rows.push_back(std::move(*row));
  }
}

std::uint64_t use_from(std::int64_t column) {
  return column < 0 || column > kUsesMax ? 0 : static_cast<std::uint64_t>(column);
}

Digest random_digest() {
  std::random_device device;
  const auto half = [&] { return std::uint64_t{device()} << 32U | device(); };
  const std::uint64_t low = half();
  return {low, half()};
}

/// `prepare`, or a run of the statement with `bind` applied.
template <class Bind>
Result<void> run(Database& database, std::string_view sql, Bind bind) {
  Result<Statement> statement = database.prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  bind(*statement);
  return statement->run();
}

/// SQLite says the same of a lock that another holds and of locks that do not work; the kernel does not.
bool is_locked_by_another(const fs::path& file) {
  const int opened = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (opened < 0) return false;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;  // to the end, wherever SQLite's bytes are
  const bool locked = ::fcntl(opened, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(opened);
  return locked;
}

}  // namespace

void Metadata::remove(const fs::path& file) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code ignored;
    fs::remove(file.native() + suffix, ignored);
  }
}

Result<Metadata> Metadata::open(const fs::path& file, std::vector<std::string>& notes) {
  Result<Metadata> opened = open_with(file, nullptr, notes);
  if (opened || opened.error().fault != Fault::kIo) return opened;
  if (is_locked_by_another(file))
    return fail(Fault::kIo, file.string() + ": another program has locked it",
                "end that program, as a backup, then run 'efimd stop'");
  // A file system whose locks do not work: the store's own lock file, where that works, is enough.
  Result<Metadata> unlocked = open_with(file, "unix-none", notes);
  if (!unlocked) return opened;
  notes.push_back("the store's file system has no locks for SQLite (" + opened.error().what +
                  "); it is used without locks");
  return unlocked;
}

Result<Metadata> Metadata::open_with(const fs::path& file, const char* vfs,
                                     std::vector<std::string>& notes) {
  if (const auto made = open_private_file(file); !made) return tl::unexpected(made.error());
  Result<Database> database = Database::open(file, vfs);
  if (!database) return tl::unexpected(database.error());
  // Exclusive: WAL then needs no shared memory, which network file systems do not have.
  for (const char* pragma : {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA foreign_keys = ON",
                             "PRAGMA secure_delete = ON", "PRAGMA journal_size_limit = 1048576",
                             // VACUUM's copy stays out of the system's temporary folder (ST-2).
                             "PRAGMA temp_store = MEMORY"})
    if (const auto set = database->run(pragma); !set) return tl::unexpected(set.error());
  const Result<std::string> journal = database->value("PRAGMA journal_mode = WAL");
  if (!journal) return tl::unexpected(journal.error());
  if (*journal != "wal")
    notes.push_back("SQLite keeps the store's database with journal mode " + *journal +
                    " instead of WAL: writing is slower");
  // FULL: a loss of power takes nothing that was committed. Only this thread waits for it.
  const std::string checkpoint =
      fmt::format("PRAGMA wal_autocheckpoint = {}; PRAGMA synchronous = FULL", kWalPages);
  if (const auto set = database->run(checkpoint.c_str()); !set) return tl::unexpected(set.error());
  Metadata metadata(std::move(*database));
  if (const auto ready = metadata.prepare_schema(); !ready) return tl::unexpected(ready.error());
  return metadata;
}

Result<void> Metadata::prepare_schema() {
  const Result<std::string> version = database_.value("PRAGMA user_version");
  if (!version) return tl::unexpected(version.error());
  const Result<std::string> tables = database_.value("SELECT count(*) FROM sqlite_schema");
  if (!tables) return tl::unexpected(tables.error());
  if (*version == "0" && *tables == "0") {
    Result<Transaction> transaction = Transaction::begin(database_);
    if (!transaction) return tl::unexpected(transaction.error());
    const std::string sql =
        fmt::format("{} {} PRAGMA user_version = {};", kSchema, kLaterSchema, kSchemaVersion);
    if (Result<void> made = database_.run(sql.c_str()); !made) return made;
    return transaction->commit();
  }
  if (*version != std::to_string(kSchemaVersion))
    return fail(Fault::kBadInput,
                fmt::format("the store's database has schema {}, this efimd has {}", *version,
                            kSchemaVersion));
  const Result<std::string> sound = database_.value("PRAGMA quick_check(1)");
  if (!sound) return tl::unexpected(sound.error());
  if (*sound != "ok") return fail(Fault::kBadInput, "the store's database is damaged: " + *sound);
  return database_.run(kLaterSchema);
}

Result<std::vector<ArenaRow>> Metadata::arenas() {
  return rows_of<ArenaRow>(
      database_, "SELECT id, model, model_name, kv_type, page_bytes, nonce FROM arenas",
      [](const Statement& row) -> std::optional<ArenaRow> {
        const auto model = row.digest(1);
        const auto nonce = row.digest(5);
        const std::int64_t id = row.integer(0);
        const std::int64_t page_bytes = row.integer(4);
        // Each bound is what a sound row keeps; a damaged one is passed over with its pages.
        if (!model || !nonce || id <= 0 || id > INT32_MAX || page_bytes <= 0 ||
            page_bytes > (std::int64_t{1} << 32))
          return std::nullopt;
        return ArenaRow{static_cast<int>(id),
                        {*model, row.text(2), row.text(3), static_cast<std::size_t>(page_bytes)},
                        *nonce};
      });
}

Result<std::vector<SourceRow>> Metadata::sources() {
  return rows_of<SourceRow>(
      database_,
      "SELECT id, uri, pinned, last_use, used_at_s, ifnull(longer, 0) "
      "FROM sources LEFT JOIN returns ON source = id",
      [](const Statement& row) {
        const std::int64_t longer = row.integer(5);
        return std::optional<SourceRow>(
            {row.integer(0), row.text(1), row.integer(2) != 0, use_from(row.integer(3)),
             row.integer(4), longer < 0 || longer > kLongerMax ? 0 : static_cast<int>(longer)});
      });
}

Result<std::vector<PageRow>> Metadata::pages() {
  auto sources = rows_of<std::pair<std::int64_t, SourceId>>(
      database_, "SELECT page, source FROM page_sources", [](const Statement& row) {
        return std::optional(std::pair(row.integer(0), row.integer(1)));
      });
  if (!sources) return tl::unexpected(sources.error());
  std::unordered_map<std::int64_t, std::vector<SourceId>> sources_of;
  for (const auto& [page, source] : *sources) sources_of[page].push_back(source);
  return rows_of<PageRow>(database_, "SELECT id, digest, parent, checksum, last_use FROM pages",
                          [&](const Statement& row) -> std::optional<PageRow> {
                            const std::int64_t id = row.integer(0);
                            const auto page = row.digest(1);
                            if (!page) return std::nullopt;
                            return PageRow{static_cast<int>(id >> 32),
                                           static_cast<std::uint32_t>(id),
                                           *page,
                                           row.digest(2),
                                           static_cast<std::uint64_t>(row.integer(3)),
                                           use_from(row.integer(4)),
                                           std::move(sources_of[id])};
                          });
}

Result<ArenaRow> Metadata::add_arena(const ArenaKey& key) {
  ArenaRow row{0, key, random_digest()};
  // The row is there already if its file could not be made when it was added.
  Result<Statement> insert = database_.prepare(
      "INSERT INTO arenas (model, model_name, kv_type, page_bytes, nonce) VALUES (?, ?, ?, ?, ?) "
      "ON CONFLICT (model, kv_type, page_bytes) "
      "DO UPDATE SET model_name = excluded.model_name, nonce = excluded.nonce RETURNING id");
  if (!insert) return tl::unexpected(insert.error());
  insert->bind(1, key.model)
      .bind(2, key.model_name)
      .bind(3, key.kv_type)
      .bind(4, static_cast<std::int64_t>(key.page_bytes))
      .bind(5, row.nonce);
  if (const Result<bool> added = insert->step(); !added) return tl::unexpected(added.error());
  row.id = static_cast<int>(insert->integer(0));
  if (const Result<void> done = insert->run(); !done) return tl::unexpected(done.error());
  return row;
}

Result<void> Metadata::remove_arena(int arena) {
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return tl::unexpected(transaction.error());
  const auto in_arena = [&](Statement& statement) { statement.bind(1, std::int64_t{arena}); };
  if (auto done = run(database_, "DELETE FROM pages WHERE id >> 32 = ?", in_arena); !done)
    return done;
  if (auto done = run(database_, kDeleteNotesOfArena, in_arena); !done) return done;
  if (auto done = run(database_, "DELETE FROM arenas WHERE id = ?", in_arena); !done) return done;
  return transaction->commit();
}

Result<SourceRow> Metadata::add_source(std::string_view uri) {
  Result<Statement> insert = database_.prepare(
      "INSERT INTO sources (uri) VALUES (?) ON CONFLICT (uri) DO UPDATE SET uri = uri "
      "RETURNING id, pinned, last_use, used_at_s");
  if (!insert) return tl::unexpected(insert.error());
  insert->bind(1, uri);
  const Result<bool> added = insert->step();
  if (!added) return tl::unexpected(added.error());
  SourceRow row{insert->integer(0),           std::string(uri),   insert->integer(1) != 0,
                use_from(insert->integer(2)), insert->integer(3), 0};
  if (const Result<void> done = insert->run(); !done) return tl::unexpected(done.error());
  return row;
}

Result<void> Metadata::use_source(const SourceRow& source, std::int64_t half_life) {
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return tl::unexpected(transaction.error());
  const auto used = [&](Statement& row) {
    const auto last_use = static_cast<std::int64_t>(source.last_use);
    row.bind(1, last_use).bind(2, source.used_at_s).bind(3, source.id);
  };
  if (auto done = run(database_, kUseSource, used); !done) return done;
  const auto kept = [&](Statement& row) { row.bind(1, source.id).bind(2, source.longer); };
  if (auto done = run(database_, kKeepLonger, kept); !done) return done;
  if (auto done = set_counter(kHalfLifeCounter, half_life); !done) return done;
  return transaction->commit();
}

Result<void> Metadata::pin_source(SourceId source, bool pinned) {
  return run(database_, "UPDATE sources SET pinned = ? WHERE id = ?", [&](Statement& statement) {
    statement.bind(1, std::int64_t{pinned}).bind(2, source);
  });
}

Result<void> Metadata::run_for_each(std::string_view sql, std::span<const std::int64_t> ids) {
  if (ids.empty()) return {};
  Result<Statement> statement = database_.prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  for (const std::int64_t id : ids) {
    statement->bind(1, id);
    if (Result<void> done = statement->run(); !done) return done;
  }
  return {};
}

Result<void> Metadata::remove(const Removal& removal) {
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return tl::unexpected(transaction.error());
  if (auto done = run_for_each(kDeletePage, removal.pages); !done) return done;
  if (auto done = run_for_each("DELETE FROM notes WHERE source = ?", removal.notes); !done)
    return done;
  if (auto done = run_for_each("DELETE FROM sources WHERE id = ?", removal.sources); !done)
    return done;
  return transaction->commit();
}

Result<void> Metadata::change_pages(std::span<const std::int64_t> removed,
                                    std::span<const PageRow> added) {
  Result<Transaction> transaction = Transaction::begin(database_);
  if (!transaction) return tl::unexpected(transaction.error());
  if (auto done = run_for_each(kDeletePage, removed); !done) return done;
  Result<Statement> insert = database_.prepare(
      "INSERT OR REPLACE INTO pages (id, digest, parent, checksum, last_use) "
      "VALUES (?, ?, ?, ?, ?)");
  if (!insert) return tl::unexpected(insert.error());
  for (const PageRow& row : added) {
    insert->bind(1, page_row_id(row.arena, row.slot)).bind(2, row.page);
    if (row.parent) {
      insert->bind(3, *row.parent);
    } else {
      insert->bind_null(3);
    }
    insert->bind(4, static_cast<std::int64_t>(row.checksum))
        .bind(5, static_cast<std::int64_t>(row.last_use));
    if (Result<void> done = insert->run(); !done) return done;
    for (const SourceId source : row.sources)
      if (auto done = add_page_source(page_row_id(row.arena, row.slot), source); !done) return done;
  }
  return transaction->commit();
}

Result<void> Metadata::add_page_source(std::int64_t page, SourceId source) {
  return run(database_, "INSERT OR IGNORE INTO page_sources (page, source) VALUES (?, ?)",
             [&](Statement& statement) { statement.bind(1, page).bind(2, source); });
}

Result<std::int64_t> Metadata::counter(std::string_view name) {
  Result<Statement> select = database_.prepare("SELECT value FROM counters WHERE name = ?");
  if (!select) return tl::unexpected(select.error());
  select->bind(1, name);
  const Result<bool> found = select->step();
  if (!found) return tl::unexpected(found.error());
  return *found ? select->integer(0) : 0;
}

Result<void> Metadata::set_counter(std::string_view name, std::int64_t value) {
  return run(database_, "INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)",
             [&](Statement& statement) { statement.bind(1, name).bind(2, value); });
}

Result<void> Metadata::compact() {
  if (Result<void> done = database_.run("VACUUM"); !done) return done;
  return database_.run("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace efimd::store
