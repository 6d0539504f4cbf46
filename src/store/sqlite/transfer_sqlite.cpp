// SPDX-License-Identifier: Apache-2.0
// Source and target of a transfer in SQLite.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "store/sqlite/partial_file.hpp"
#include "store/sqlite/schema.hpp"
#include "store/transfer.hpp"

namespace pawl::sqlite {
namespace {

/// Rows per transaction of the copy, which is synced only once, at its end.
constexpr std::int64_t kRowsPerTransaction = 10'000;

std::string rows_of(const TransferTable& table, Seq horizon) {
  const bool log = std::string_view(table.name) == "log";
  return fmt::format(" FROM {}{}", table.name, log ? fmt::format(" WHERE seq > {}", horizon) : "");
}

Result<TransferMeta> transfer_meta(Database& db) {
  PAWL_TRY(const auto meta, read_meta(db));
  PAWL_TRY(const auto last, db.integer("SELECT max(seq) FROM log"));
  return TransferMeta{.incarnation = meta.incarnation,
                      .epoch = meta.epoch,
                      .high = meta.high,
                      .flushed = meta.flushed,
                      .horizon = meta.horizon,
                      .last = std::max(last, meta.horizon),
                      .last_at = meta.last_at.time_since_epoch().count()};
}

Result<void> read_table(Database& db, const TransferTable& table, Seq horizon, const TransferVisit& visit) {
  std::string sql = "SELECT ";
  for (const auto& column : table.columns) sql += fmt::format("{}, ", column.sqlite_read);
  sql.resize(sql.size() - 2);
  PAWL_TRY(auto rows, db.prepare(sql + rows_of(table, horizon)));
  const ResetGuard guard(rows);
  TransferRow row(table.columns.size());
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) return {};
    for (std::size_t i = 0; i < row.size(); ++i) {
      const int at = static_cast<int>(i);
      const auto type = table.columns[i].type;
      const bool texts = type == ColumnType::text || type == ColumnType::id;
      row[i].null = rows.is_null(at);
      row[i].number = texts ? 0 : rows.integer(at);
      if (texts) row[i].bytes = rows.text(at);
    }
    PAWL_CHECK(visit(row));
  }
}

class SqliteSource final : public TransferOrigin {
 public:
  Result<void> open(const std::string& path) {
    // Opened as the owner, so that no other process can write.
    PAWL_TRY(owner_, open_sqlite({.path = path, .create = false}));
    PAWL_TRY(db_, Database::open(path, SQLITE_OPEN_READONLY, ""));
    return prepare_connection(db_, Access::reader);
  }
  Result<TransferMeta> meta() override { return transfer_meta(db_); }
  Result<std::int64_t> count(const TransferTable& table, Seq horizon) override {
    return db_.integer("SELECT count(*)" + rows_of(table, horizon));
  }
  Result<void> read(const TransferTable& table, Seq horizon, const TransferVisit& visit) override {
    return read_table(db_, table, horizon, visit);
  }

  Result<std::vector<std::string>> application_tables() override {
    std::vector<std::string> found;
    PAWL_TRY(auto rows,
             db_.prepare("SELECT name, printf('SELECT EXISTS(SELECT 1 FROM \"%w\")', name) FROM "
                         "sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE "
                         "'\\' ORDER BY name"));
    const ResetGuard guard(rows);
    while (true) {
      PAWL_TRY(const bool more, rows.row());
      if (!more) return found;
      if (is_own_table(rows.text(0))) continue;
      PAWL_TRY(const auto filled, db_.integer(std::string(rows.text(1))));
      if (filled != 0) found.emplace_back(rows.text(0));
    }
  }

 private:
  std::unique_ptr<Store> owner_;
  Database db_;
};

class SqliteTarget final : public TransferTarget {
 public:
  Result<void> open(const std::string& path) {
    path_ = path;
    std::error_code ignored;
    there_ = std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
    if (!there_) return {};
    PAWL_TRY(db_, Database::open(path, SQLITE_OPEN_READONLY, ""));
    PAWL_CHECK(prepare_connection(db_, Access::reader));
    PAWL_TRY(const auto kind, identify(db_));
    if (kind == FileKind::pawl) return {};
    return fail(Code::invalid_argument,
                fmt::format("'{}' exists already; name a file that does not exist", path));
  }
  bool holds_store() const override { return there_; }
  Result<TransferMeta> meta() override { return transfer_meta(db_); }
  Result<std::int64_t> count(const TransferTable& table, Seq horizon) override {
    return db_.integer("SELECT count(*)" + rows_of(table, horizon));
  }
  Result<void> read(const TransferTable& table, Seq horizon, const TransferVisit& visit) override {
    return read_table(db_, table, horizon, visit);
  }

  Result<void> begin(const TransferMeta& meta) override {
    partial_.emplace(path_ + ".partial");
    PAWL_TRY(db_, Database::open(partial_->path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ""));
    PAWL_CHECK(prepare_connection(db_, Access::owner));
    PAWL_CHECK(migrate(db_, meta.incarnation));
    PAWL_CHECK(db_.run("PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=1000"));
    for (const auto& [name, value] : {std::pair("epoch", meta.epoch),
                                      {"high", meta.high},
                                      {"flushed", meta.flushed},
                                      {"horizon", meta.horizon},
                                      {"last_at", meta.last_at}}) {
      PAWL_CHECK(write_meta(db_, name, value));
    }
    return {};
  }

  Result<void> begin_table(const TransferTable& table) override {
    table_ = &table;
    std::string names;
    std::string values;
    int number = 0;
    for (const auto& column : table.columns) {
      if (*column.sqlite_name == '\0') continue;
      const std::string_view value = column.sqlite_write;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", column.sqlite_name);
      values += fmt::format("{}?{}{}", values.empty() ? "" : ", ", ++number, value.substr(1));
    }
    PAWL_TRY(insert_, db_.prepare(fmt::format("INSERT INTO {}({}) VALUES({})", table.name, names, values)));
    return db_.run("BEGIN");
  }

  Result<void> write(const TransferRow& row) override {
    int number = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto& column = table_->columns[i];
      if (*column.sqlite_name == '\0') continue;
      ++number;
      if (row[i].null) {
        insert_.bind_null(number);
      } else if (column.type == ColumnType::text) {
        insert_.bind_text(number, row[i].bytes);
      } else if (column.type == ColumnType::id) {
        insert_.bind_blob(number,
                          {reinterpret_cast<const std::uint8_t*>(row[i].bytes.data()), row[i].bytes.size()});
      } else {
        insert_.bind(number, row[i].number);
      }
    }
    PAWL_CHECK(insert_.run());
    if (++written_ % kRowsPerTransaction != 0) return {};
    return db_.run("COMMIT; BEGIN");
  }

  Result<void> end_table() override {
    insert_ = {};
    return db_.run("COMMIT");
  }

  Result<void> finish() override {
    PAWL_CHECK(db_.run("PRAGMA synchronous=FULL; PRAGMA wal_checkpoint(TRUNCATE)"));
    db_ = {};
    return partial_->move_to(path_);
  }

 private:
  std::string path_;
  bool there_ = false;
  std::optional<PartialFile> partial_;
  Database db_;
  Statement insert_;
  const TransferTable* table_ = nullptr;
  std::int64_t written_ = 0;
};

}  // namespace

Result<std::unique_ptr<TransferOrigin>> open_transfer_source(const std::string& path) {
  auto source = std::make_unique<SqliteSource>();
  PAWL_CHECK(source->open(path));
  return source;
}

Result<std::unique_ptr<TransferTarget>> open_transfer_target(const std::string& path) {
  auto target = std::make_unique<SqliteTarget>();
  PAWL_CHECK(target->open(path));
  return target;
}

}  // namespace pawl::sqlite
