// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/connection.hpp"

#include <fmt/format.h>

#include <cstring>

namespace pawl::sqlite {
namespace {

Code code_of(int primary) {
  switch (primary) {
    case SQLITE_FULL:
      return Code::disk_full;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::store_corrupt;
    case SQLITE_READONLY:
      return Code::store_read_only;
    case SQLITE_BUSY:  // another program holds the lock; nothing was done
    case SQLITE_LOCKED:
      return Code::rolled_back;
    case SQLITE_TOOBIG:
      return Code::too_large;
    default:
      return Code::store_io;
  }
}

}  // namespace

Error to_error(sqlite3* db, int code, std::string_view doing) {
  // The handle has the extended code and the message of its last failure only; use them if they belong to
  // this failure.
  const int known = db == nullptr ? code : sqlite3_extended_errcode(db);
  const int extended = (known & 0xff) == (code & 0xff) ? known : code;
  const char* text = extended == known && db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const char* file = db == nullptr ? nullptr : sqlite3_db_filename(db, "main");
  Error error(code_of(code & 0xff), fmt::format("{}: SQLite says '{}' (code {})", doing, text, extended));
  error.with("sqlite_code", fmt::format("{}", extended));
  if (file != nullptr && *file != '\0') error.with("path", file);
  return error;
}

void Statement::bind_text(int index, std::string_view text) {
  // A null pointer would bind NULL, and an empty view may hold one.
  const char* begin = text.data() == nullptr ? "" : text.data();
  sqlite3_bind_text64(get(), index, begin, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void Statement::bind_optional_text(int index, std::string_view text) {
  if (text.empty()) {
    bind_null(index);
  } else {
    bind_text(index, text);
  }
}

void Statement::bind_blob(int index, std::span<const std::uint8_t> bytes) {
  sqlite3_bind_blob64(get(), index, bytes.data(), bytes.size(), SQLITE_STATIC);
}

Result<bool> Statement::row() {
  const int code = step();
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  auto error = to_error(database(), code, "reading the store");
  reset();
  return fail(std::move(error));
}

Result<void> Statement::run() {
  int code = step();
  while (code == SQLITE_ROW) code = step();
  if (code == SQLITE_DONE) {
    reset();
    return {};
  }
  auto error = to_error(database(), code, "writing the store");
  reset();
  return fail(std::move(error));
}

std::string_view Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(get(), column))};
}

Result<InstanceId> Statement::id(int column) const {
  const auto bytes = text(column);
  InstanceId id;
  if (bytes.size() != id.bytes.size()) {
    return fail(Code::store_corrupt, fmt::format("an instance id has {} bytes instead of 16", bytes.size()));
  }
  std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  return id;
}

Result<Database> Database::open(const std::string& path, int flags, const std::string& vfs) {
  // Some builds of SQLite treat "file:…" as a URI; here a path is always a path.
  const std::string name = path.starts_with("file:") ? "./" + path : path;
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(name.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, vfs.empty() ? nullptr : vfs.c_str());
  Database db;
  db.db_.reset(raw);
  if (code != SQLITE_OK) return fail(to_error(raw, code, fmt::format("opening '{}'", path)));
  sqlite3_extended_result_codes(raw, 1);
  return db;
}

Result<void> Database::run(const std::string& script) {
  const int code = sqlite3_exec(get(), script.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(error(code, fmt::format("running '{}'", script.substr(0, 60))));
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return fail(error(code, fmt::format("preparing '{}'", sql.substr(0, 60))));
  return Statement(raw);
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  PAWL_TRY(auto statement, prepare(sql));
  PAWL_TRY(const bool found, statement.row());
  return found ? statement.integer(0) : 0;
}

Result<Snapshot> Snapshot::begin(Database& db) {
  PAWL_CHECK(db.run("BEGIN"));
  return Snapshot(db);
}

Snapshot::~Snapshot() {
  // Ending a read transaction writes nothing; the connection is only ever reused for further reading.
  if (db_ != nullptr && db_->in_transaction()) sqlite3_exec(db_->get(), "COMMIT", nullptr, nullptr, nullptr);
}

}  // namespace pawl::sqlite
