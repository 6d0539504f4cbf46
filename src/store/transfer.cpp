// SPDX-License-Identifier: Apache-2.0
#include "store/transfer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace pawl {
namespace {

constexpr std::string_view kSqliteScheme = "sqlite:";
constexpr std::int64_t kRowsPerReport = 1024;

constexpr TransferColumn plain(const char* name, ColumnType type) { return {name, type, name, name, "?"}; }

constexpr std::array kMachineColumns{plain("number", ColumnType::int4), plain("name", ColumnType::text)};
constexpr std::array kEphemeralColumns{plain("id", ColumnType::id), plain("name", ColumnType::text),
                                       plain("value", ColumnType::text), plain("at", ColumnType::int8)};
constexpr std::array kHeadColumns{
    plain("id", ColumnType::id),
    plain("machine", ColumnType::int4),
    plain("key", ColumnType::text),
    plain("partition", ColumnType::text),
    plain("generation", ColumnType::int8),
    plain("version", ColumnType::int8),
    plain("seq", ColumnType::int8),
    plain("state", ColumnType::text),
    plain("created_at", ColumnType::int8),
    plain("at", ColumnType::int8),
    TransferColumn{"finished_seq", ColumnType::int8, "finished", "CASE WHEN finished THEN seq END",
                   "? IS NOT NULL"},
    plain("has_extra", ColumnType::boolean),
    plain("kind", ColumnType::int2),
    plain("prev", ColumnType::int8),
    plain("schema", ColumnType::int8),
    plain("event", ColumnType::text),
    plain("payload", ColumnType::text),
    plain("data", ColumnType::text),
    plain("extra", ColumnType::text),
};
constexpr std::array kLogColumns{
    plain("seq", ColumnType::int8),
    // The writing owner matters only while it is alive.
    TransferColumn{"epoch", ColumnType::int8, "", "0", ""},
    plain("id", ColumnType::id),
    plain("machine", ColumnType::int4),
    plain("kind", ColumnType::int2),
    plain("version", ColumnType::int8),
    plain("generation", ColumnType::int8),
    plain("prev", ColumnType::int8),
    plain("at", ColumnType::int8),
    plain("state", ColumnType::text),
    plain("schema", ColumnType::int8),
    plain("finished", ColumnType::boolean),
    plain("event", ColumnType::text),
    plain("payload", ColumnType::text),
    plain("data", ColumnType::text),
    plain("extra", ColumnType::text),
    plain("key", ColumnType::text),
    plain("partition", ColumnType::text),
    plain("request", ColumnType::id),
    plain("content", ColumnType::int8),
    plain("members", ColumnType::int4),
};

constexpr TransferTable kLogTable{"log", kLogColumns};
constexpr TransferTable kHeadTable{"heads", kHeadColumns};
constexpr std::array kTransferTables{TransferTable{"machines", kMachineColumns}, kLogTable, kHeadTable,
                                     TransferTable{"ephemeral", kEphemeralColumns}};

/// Checksum of a table's rows, independent of their order.
class Checksum {
 public:
  void add(const TransferTable& table, const TransferRow& row) {
    ++rows_;
    text_.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (*table.columns[i].sqlite_name == '\0') continue;
      const auto& field = row[i];
      text_ += fmt::format("{}:{}:{}:", field.null ? 'n' : 'v', field.number, field.bytes.size());
      text_ += field.bytes;
    }
    std::array<std::uint64_t, 2> halves{};
    const auto digest = digest16(text_);
    std::memcpy(halves.data(), digest.data(), digest.size());
    sums_[0] += halves[0];
    sums_[1] += halves[1];
  }
  std::int64_t rows() const { return rows_; }
  bool operator==(const Checksum& other) const { return rows_ == other.rows_ && sums_ == other.sums_; }

 private:
  std::int64_t rows_ = 0;
  std::array<std::uint64_t, 2> sums_{};
  std::string text_;
};

bool is_sqlite(const std::string& where) { return where.starts_with(kSqliteScheme); }

Result<std::unique_ptr<TransferOrigin>> open_source(const std::string& where) {
  if (is_sqlite(where)) return sqlite::open_transfer_source(where.substr(kSqliteScheme.size()));
  return postgres::open_transfer_source(where);
}

Result<std::unique_ptr<TransferTarget>> open_target(const std::string& where) {
  if (is_sqlite(where)) return sqlite::open_transfer_target(where.substr(kSqliteScheme.size()));
  return postgres::open_transfer_target(where);
}

class Transfer {
 public:
  Transfer(TransferOrigin& from, TransferTarget& to, const TransferOptions& options)
      : from_(from), to_(to), options_(options), progress_(options.progress) {}

  Result<TransferReport> run() {
    PAWL_TRY(meta_, from_.meta());
    TransferReport report{.was_there = to_.holds_store()};
    if (!report.was_there && !options_.without_application_tables) PAWL_CHECK(check_application_tables());
    PAWL_CHECK(report.was_there ? compare_with_former() : copy());
    PAWL_TRY(report.entries, from_.count(kLogTable, meta_.horizon));
    PAWL_TRY(report.instances, from_.count(kHeadTable, meta_.horizon));
    if (progress_) progress_(1.0);
    return report;
  }

 private:
  /// Refuses to leave rows of the application behind silently.
  Result<void> check_application_tables() {
    PAWL_TRY(auto tables, from_.application_tables());
    std::erase(tables, kMigrationRecord);  // created again with the tables
    if (tables.empty()) return {};
    const auto names = fmt::format("{}", fmt::join(tables, ", "));
    return fail(
        Code::invalid_argument,
        fmt::format("the source has tables of the application with rows, which are not copied: {}. Move "
                    "them yourself, and say --without-application-tables to copy the store alone",
                    names),
        {{"tables", names}});
  }

  Result<void> copy() {
    for (const auto& table : kTransferTables) {
      PAWL_TRY(const auto rows, from_.count(table, meta_.horizon));
      all_ += 2 * rows;  // once for writing, once for reading again
    }
    PAWL_CHECK(to_.begin(meta_));
    std::vector<Checksum> sums;
    for (const auto& table : kTransferTables) {
      PAWL_CHECK(to_.begin_table(table));
      auto& sum = sums.emplace_back();
      PAWL_CHECK(from_.read(table, meta_.horizon, [&](const TransferRow& row) -> Result<void> {
        sum.add(table, row);
        advance();
        return to_.write(row);
      }));
      PAWL_CHECK(to_.end_table());
    }
    for (std::size_t i = 0; i < kTransferTables.size(); ++i) {
      PAWL_TRY(const auto sum, sum_of(to_, kTransferTables.at(i)));
      if (sum == sums[i]) continue;
      return fail(Code::store_corrupt,
                  fmt::format("the copy of the table {} differs: {} rows instead of {}, or their checksum",
                              kTransferTables.at(i).name, sum.rows(), sums[i].rows()));
    }
    return to_.finish();
  }

  /// Whether an earlier transfer was complete: compares the log, because opening either store may have
  /// changed the rest.
  Result<void> compare_with_former() {
    PAWL_TRY(const auto there, to_.meta());
    if (there.incarnation != meta_.incarnation) {
      return fail(
          Code::invalid_argument,
          fmt::format("the target holds another store (incarnation {}, the source's is {}); give one that "
                      "holds none",
                      there.incarnation, meta_.incarnation));
    }
    PAWL_TRY(const auto rows, from_.count(kLogTable, meta_.horizon));
    all_ = 2 * rows;
    bool same = there.horizon == meta_.horizon && there.last == meta_.last;
    if (same) {
      PAWL_TRY(const auto mine, sum_of(from_, kLogTable));
      PAWL_TRY(const auto theirs, sum_of(to_, kLogTable));
      same = mine == theirs;
    }
    if (same) return {};
    return fail(
        Code::invalid_argument,
        fmt::format("the target holds this store already, up to entry {}, and the source goes up to entry "
                    "{}: one of them has gone on since it was copied",
                    there.last, meta_.last));
  }

  Result<Checksum> sum_of(TransferSource& source, const TransferTable& table) {
    Checksum sum;
    PAWL_CHECK(source.read(table, meta_.horizon, [&](const TransferRow& row) -> Result<void> {
      sum.add(table, row);
      advance();
      return {};
    }));
    return sum;
  }

  void advance() {
    if (progress_ && ++done_ % kRowsPerReport == 0)
      progress_(
          std::min(0.99, static_cast<double>(done_) / static_cast<double>(std::max<std::int64_t>(all_, 1))));
  }

  TransferOrigin& from_;
  TransferTarget& to_;
  const TransferOptions& options_;
  const std::function<void(double)>& progress_;
  TransferMeta meta_;
  std::int64_t all_ = 0;
  std::int64_t done_ = 0;
};

}  // namespace

Result<TransferReport> transfer_store(const std::string& from, const std::string& to,
                                      const TransferOptions& options) {
  PAWL_TRY(const auto source, open_source(from));
  PAWL_TRY(const auto target, open_target(to));
  return Transfer(*source, *target, options).run();
}

}  // namespace pawl
