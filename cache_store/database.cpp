#include "cache_store/database.h"

#include <sqlite3.h>

#include <cstring>
#include <utility>

namespace efimd::store {

namespace {

tl::unexpected<Error> sqlite_failure(sqlite3* database, int code) {
  const char* reason = database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database);
  const int primary = code & 0xFF;
  const bool damaged =
      primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_FORMAT ||
      primary == SQLITE_CONSTRAINT || primary == SQLITE_ERROR || primary == SQLITE_MISMATCH ||
      // Without a reason beside it: the file can be written, but its head forbids it.
      code == SQLITE_READONLY;
  return fail(damaged ? Fault::kBadInput : Fault::kIo,
              std::string("the store's database: ") + reason);
}

tl::unexpected<Error> closed() { return fail(Fault::kIo, "the store's database is not open"); }

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view value) {
  sqlite3_bind_text(statement_.get(), parameter, value.data(), static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind(int parameter, std::span<const std::byte> value) {
  // A null pointer would bind NULL, and an empty blob is none.
  const void* data = value.empty() ? "" : static_cast<const void*>(value.data());
  sqlite3_bind_blob(statement_.get(), parameter, data, static_cast<int>(value.size()),
                    SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind(int parameter, const Digest& value) {
  return bind(parameter, std::as_bytes(std::span(&value, 1)));
}

Statement& Statement::bind_null(int parameter) {
  sqlite3_bind_null(statement_.get(), parameter);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(statement_.get());
  if (code == SQLITE_DONE) return false;
  return sqlite_failure(database_, code);
}

Result<void> Statement::run() {
  for (;;) {
    const Result<bool> row = step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
  }
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::span<const std::byte> Statement::bytes(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::optional<Digest> Statement::digest(int column) const {
  const std::span<const std::byte> data = bytes(column);
  if (data.size() != sizeof(Digest)) return std::nullopt;
  Digest digest;
  std::memcpy(&digest, data.data(), sizeof digest);
  return digest;
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Result<Database> Database::open(const std::filesystem::path& file, const char* vfs) {
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs);
  Database database(opened);
  if (code != SQLITE_OK) return sqlite_failure(opened, code);
  sqlite3_extended_result_codes(opened, 1);
  // Defensive: a damaged file must not make SQLite run what it holds.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return database;
}

bool Database::is_in_place() const {
  if (!database_) return false;
  int moved = 0;
  const int code = sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return code != SQLITE_OK || moved == 0;
}

Result<void> Database::run(const char* sql) {
  if (!database_) return closed();
  const int code = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return sqlite_failure(database_.get(), code);
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  if (!database_) return closed();
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return sqlite_failure(database_.get(), code);
  return Statement(database_.get(), statement);
}

Result<std::string> Database::value(const char* sql) {
  Result<Statement> statement = prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  const Result<bool> row = statement->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? statement->text(0) : std::string();
}

Result<Transaction> Transaction::begin(Database& database) {
  if (const Result<void> begun = database.run("BEGIN IMMEDIATE"); !begun)
    return tl::unexpected(begun.error());
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ != nullptr) static_cast<void>(database_->run("ROLLBACK"));
}

Result<void> Transaction::commit() {
  Result<void> done = database_->run("COMMIT");
  if (done) database_ = nullptr;
  return done;
}

}  // namespace efimd::store
