// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Copies a whole store from one kind of database to another: the common part, row by row.
///
///     PAWL_TRY(const auto done, transfer_store("sqlite:pawl.db", "postgresql://…", {}));
///
/// Nothing here is thread-safe.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.hpp"

namespace pawl {

struct TransferOptions {
  bool without_application_tables = false;  ///< continue although the source has some, which are not copied
  std::function<void(double)> progress{};   ///< called with the progress, from 0 to 1
};

struct TransferReport {
  std::int64_t entries = 0;
  std::int64_t instances = 0;
  bool was_there = false;  ///< an earlier transfer was complete; nothing was written
};

/// Copies a store that is not open, including its numbers and incarnation, then reads the copy and compares
/// counts and checksums; only then does the copy become a store. The application's own tables are not copied,
/// because the meaning of their columns differs between the databases. An interrupted transfer leaves no
/// store and can be repeated. Errors: `store_locked` if the source is in use, `invalid_argument` if the
/// target contains another store or tables of the application have rows, `store_corrupt` if the copy differs,
/// and those of the stores.
Result<TransferReport> transfer_store(const std::string& from, const std::string& to,
                                      const TransferOptions& options = {});

// Interface to the two kinds of databases.

enum class ColumnType : std::uint8_t { int2, int4, int8, boolean, text, id };

/// A column by its name in PostgreSQL. In SQLite it is read as an expression and written as another one, of
/// which
/// "?" is the value; an empty name means that SQLite has no such column.
struct TransferColumn {
  const char* name;
  ColumnType type;
  const char* sqlite_name;
  const char* sqlite_read;
  const char* sqlite_write;
};

struct TransferTable {
  const char* name;
  std::span<const TransferColumn> columns;
};

/// Null, a number, or a text or id.
struct TransferField {
  bool null = false;
  std::int64_t number = 0;
  std::string bytes{};
};
using TransferRow = std::vector<TransferField>;
using TransferVisit = std::function<Result<void>(const TransferRow&)>;

struct TransferMeta {
  std::string incarnation;
  std::int64_t epoch = 0;
  Seq high = 0;
  Seq flushed = 0;
  Seq horizon = 0;
  Seq last = 0;
  std::int64_t last_at = 0;
};

class TransferSource {
 public:
  TransferSource() = default;
  TransferSource(const TransferSource&) = delete;
  TransferSource& operator=(const TransferSource&) = delete;
  virtual ~TransferSource() = default;
  virtual Result<TransferMeta> meta() = 0;
  /// The entries of the log above the horizon only.
  virtual Result<std::int64_t> count(const TransferTable& table, Seq horizon) = 0;
  virtual Result<void> read(const TransferTable& table, Seq horizon, const TransferVisit& visit) = 0;
};

/// The source of a transfer.
class TransferOrigin : public TransferSource {
 public:
  /// Tables other than Pawl's own that have rows.
  virtual Result<std::vector<std::string>> application_tables() = 0;
};

/// The target of a transfer; it can be read before it is finished.
class TransferTarget : public TransferSource {
 public:
  /// The `meta` of a store that exists already; then the target is only read.
  virtual bool holds_store() const = 0;
  virtual Result<void> begin(const TransferMeta& meta) = 0;
  virtual Result<void> begin_table(const TransferTable& table) = 0;
  virtual Result<void> write(const TransferRow& row) = 0;
  virtual Result<void> end_table() = 0;
  /// Makes the copy a store.
  virtual Result<void> finish() = 0;
};

namespace sqlite {
Result<std::unique_ptr<TransferOrigin>> open_transfer_source(const std::string& path);
Result<std::unique_ptr<TransferTarget>> open_transfer_target(const std::string& path);
}  // namespace sqlite

namespace postgres {
Result<std::unique_ptr<TransferOrigin>> open_transfer_source(const std::string& url);
Result<std::unique_ptr<TransferTarget>> open_transfer_target(const std::string& url);
}  // namespace postgres

}  // namespace pawl
