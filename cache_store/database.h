#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/digest.h"
#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace efimd::store {

/// One prepared statement. bind() counts parameters from 1, column_*() from 0, as SQLite does.
///
/// Thread: its database's.  Fails with kBadInput if the database is damaged or not one at all
/// (start it over), else with kIo.
class Statement {
 public:
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, std::string_view value);
  Statement& bind(int parameter, std::span<const std::byte> value);
  Statement& bind(int parameter, const Digest& value);
  Statement& bind_null(int parameter);

  /// Goes to the next row; false if there is none. Then it is reset, and keeps its parameters.
  Result<bool> step();
  /// For statements without rows: runs to the end.
  Result<void> run();

  std::int64_t integer(int column) const;
  std::string text(int column) const;
  std::span<const std::byte> bytes(int column) const;  ///< until the next step()
  /// nullopt for NULL and for anything that is not a digest.
  std::optional<Digest> digest(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// One SQLite connection. Nothing else in efimd includes sqlite3.h.
///
/// Thread: one at a time.  Errors as Statement's; every call on a closed one gives kIo.
class Database {
 public:
  /// Closed.
  Database() = default;
  /// Opens `file`, which must exist (private_file.h makes it). `vfs` is SQLite's name of how to
  /// reach files; nullptr: its default, "unix-none": without locks.
  static Result<Database> open(const std::filesystem::path& file, const char* vfs);

  Result<void> run(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  /// The only column of the only row of `sql`, as text.
  Result<std::string> value(const char* sql);
  /// Whether it is open, and its file still has the name that it was opened by.
  bool is_in_place() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}
  std::unique_ptr<sqlite3, Close> database_;
};

/// BEGIN IMMEDIATE, and ROLLBACK unless commit() was called.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace efimd::store
