// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A thin layer over SQLite's C interface: RAII handles, typed binding and reading, and errors as pawl
/// errors.
///
///     PAWL_TRY(auto db, Database::open(path, SQLITE_OPEN_READWRITE, ""));
///     PAWL_TRY(auto find, db.prepare("SELECT name FROM machines WHERE number = ?1"));
///     find.bind(1, number);
///     PAWL_TRY(const bool found, find.row());
///
/// Not thread-safe: connections are opened without SQLite's mutex.

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pawl/error.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/time.hpp"

namespace pawl::sqlite {

/// The pawl error for a result code: `disk_full`, `store_corrupt`, `store_read_only`, `rolled_back` if
/// another connection held a lock for too long, otherwise `store_io`; with SQLite's own message and extended
/// code. `db` may be null.
Error to_error(sqlite3* db, int code, std::string_view doing);

/// A file control that Pawl's own VFSs answer with the free bytes of the device, a `sqlite3_int64`.
inline constexpr int kSpaceLeft = 0x5061776c;

/// A prepared statement. Bound text and blobs are borrowed until the next `reset`.
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  sqlite3_stmt* get() const { return statement_.get(); }
  sqlite3* database() const { return sqlite3_db_handle(get()); }
  explicit operator bool() const { return statement_ != nullptr; }

  void bind(int index, std::int64_t value) { sqlite3_bind_int64(get(), index, value); }
  void bind(int index, Time time) { bind(index, std::int64_t{time.time_since_epoch().count()}); }
  void bind_text(int index, std::string_view text);
  /// Binds NULL if the text is empty.
  void bind_optional_text(int index, std::string_view text);
  void bind_blob(int index, std::span<const std::uint8_t> bytes);
  void bind_null(int index) { sqlite3_bind_null(get(), index); }

  /// SQLite's own result code.
  int step() { return sqlite3_step(get()); }
  void reset() { sqlite3_reset(get()); }

  /// Steps; returns whether there is another row. Resets the statement at the end or after an error.
  Result<bool> row();
  /// Runs the statement to its end and resets it.
  Result<void> run();

  std::int64_t integer(int column) const { return sqlite3_column_int64(get(), column); }
  bool is_null(int column) const { return sqlite3_column_type(get(), column) == SQLITE_NULL; }
  /// Valid until the next step. Empty for NULL.
  std::string_view text(int column) const;
  Time time(int column) const { return Time(Duration(integer(column))); }
  /// Error: `store_corrupt` if it does not have 16 bytes.
  Result<InstanceId> id(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// Resets a statement at the end of a scope, so that no read snapshot outlives it.
class ResetGuard {
 public:
  explicit ResetGuard(Statement& statement) : statement_(statement) {}
  ResetGuard(const ResetGuard&) = delete;
  ResetGuard& operator=(const ResetGuard&) = delete;
  ~ResetGuard() { statement_.reset(); }

 private:
  Statement& statement_;
};

/// A connection.
class Database {
 public:
  Database() = default;
  static Result<Database> open(const std::string& path, int flags, const std::string& vfs);

  sqlite3* get() const { return db_.get(); }
  explicit operator bool() const { return db_ != nullptr; }

  /// Runs a script of Pawl, not of the application.
  Result<void> run(const std::string& script);
  Result<Statement> prepare(std::string_view sql);
  /// The first column of the first row of one of Pawl's queries; 0 if there is no row.
  Result<std::int64_t> integer(std::string_view sql);
  Error error(int code, std::string_view doing) const { return to_error(get(), code, doing); }
  /// Whether closing keeps the WAL: if its contents are in doubt, the next opening recovers them.
  void leave_wal(bool leave) {
    sqlite3_db_config(get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave ? 1 : 0, nullptr);
  }
  bool in_transaction() const { return sqlite3_get_autocommit(get()) == 0; }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
};

/// A read transaction for a scope: its statements see the same snapshot.
class Snapshot {
 public:
  static Result<Snapshot> begin(Database& db);
  Snapshot(Snapshot&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  Snapshot& operator=(Snapshot&&) = delete;
  ~Snapshot();

 private:
  explicit Snapshot(Database& db) : db_(&db) {}
  Database* db_;
};

}  // namespace pawl::sqlite
