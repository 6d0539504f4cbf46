// SPDX-License-Identifier: Apache-2.0
// Source and target of a transfer in PostgreSQL. The copy is made in one transaction, so that an interrupted
// transfer leaves only an empty schema.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "store/postgres/schema.hpp"
#include "store/postgres/wire.hpp"
#include "store/transfer.hpp"

namespace pawl::postgres {
namespace {

constexpr std::size_t kCopyPart = std::size_t{1} << 20;
constexpr Seq kPartition = 1'000'000;

void put_int2(std::string& out, std::int64_t value) {
  out += static_cast<char>(static_cast<std::uint64_t>(value) >> 8U & 0xffU);
  out += static_cast<char>(static_cast<std::uint64_t>(value) & 0xffU);
}

std::string rows_of(const TransferTable& table, Seq horizon) {
  const bool log = std::string_view(table.name) == "log";
  return fmt::format(" FROM {{s}}.{}{}", table.name, log ? fmt::format(" WHERE seq > {}", horizon) : "");
}

std::string columns_of(const TransferTable& table) {
  std::string names;
  for (const auto& column : table.columns)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", column.name);
  return names;
}

/// A connection to one store, with the reads that source and target need.
class End {
 public:
  Result<void> open(const std::string& url, bool read_only) {
    options_ = {.url = url};
    PAWL_TRY(address_, Address::parse(options_));
    if (!read_only) address_.set_default("target_session_attrs", "read-write");
    names_ = Names(options_.schema);
    PAWL_TRY(db_, Connection::open(address_, {.patience = options_.patience, .read_only = read_only}));
    return {};
  }

  Connection& db() { return db_; }
  const Names& names() const { return names_; }
  bool unsafe() const { return options_.unsafe; }

  Result<TransferMeta> meta() {
    PAWL_TRY(const auto meta, read_meta(db_, names_));
    PAWL_TRY(const auto row, db_.run(names_("SELECT (SELECT max(seq) FROM {s}.log), epoch FROM {s}.shards")));
    return TransferMeta{.incarnation = meta.incarnation,
                        .epoch = row.integer(0, 1),
                        .high = meta.high,
                        .flushed = meta.flushed,
                        .horizon = meta.horizon,
                        .last = std::max(row.integer(0, 0), meta.horizon),
                        .last_at = meta.last_at.time_since_epoch().count()};
  }

  Result<std::int64_t> count(const TransferTable& table, Seq horizon) {
    PAWL_TRY(const auto row, db_.run(names_("SELECT count(*)" + rows_of(table, horizon))));
    return row.integer(0, 0);
  }

  /// The tables that statements of the application can reach without a schema's name.
  Result<std::vector<std::string>> application_tables() {
    PAWL_TRY(
        const auto tables,
        db_.run("SELECT c.relname, n.nspname = $1, format('SELECT 1 FROM %I.%I LIMIT 1', n.nspname, "
                "c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind "
                "IN ('r', 'p') AND NOT c.relispartition AND (n.nspname = $1 OR n.nspname = "
                "ANY(current_schemas(false))) ORDER BY c.relname",
                Params().text(names_.schema())));
    std::vector<std::string> found;
    for (int i = 0; i < tables.count(); ++i) {
      auto name = tables.text(i, 0);
      if (tables.boolean(i, 1) && is_own_table(name)) continue;
      PAWL_TRY(const auto filled, db_.run(tables.text(i, 2)));
      if (filled.count() != 0) found.push_back(std::move(name));
    }
    return found;
  }

  Result<void> read(const TransferTable& table, Seq horizon, const TransferVisit& visit) {
    TransferRow row(table.columns.size());
    return db_.copy_out(names_("SELECT " + columns_of(table) + rows_of(table, horizon)),
                        [&](const CopiedRow& copied) -> Result<void> {
                          for (std::size_t i = 0; i < row.size(); ++i) {
                            const auto type = table.columns[i].type;
                            row[i] = {.null = copied.is_null(i)};
                            if (type == ColumnType::text) {
                              row[i].bytes = copied.text(i);
                            } else if (type == ColumnType::id) {
                              row[i].bytes = copied.bytes(i);
                            } else if (!row[i].null) {
                              row[i].number = copied.integer(i);
                            }
                          }
                          return visit(row);
                        });
  }

 private:
  PostgresOptions options_;
  Address address_;
  Names names_{"pawl"};
  Connection db_;
};

class PostgresSource final : public TransferOrigin {
 public:
  Result<void> open(const std::string& url) {
    // Opened as the owner, so that no other process can write.
    PAWL_TRY(owner_, open_postgres({.url = url, .create = false}));
    PAWL_CHECK(end_.open(url, true));
    PAWL_CHECK(end_.db().run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
    return {};
  }
  Result<TransferMeta> meta() override { return end_.meta(); }
  Result<std::int64_t> count(const TransferTable& table, Seq horizon) override {
    return end_.count(table, horizon);
  }
  Result<void> read(const TransferTable& table, Seq horizon, const TransferVisit& visit) override {
    return end_.read(table, horizon, visit);
  }

  Result<std::vector<std::string>> application_tables() override { return end_.application_tables(); }

 private:
  std::unique_ptr<Store> owner_;
  End end_;
};

class PostgresTarget final : public TransferTarget {
 public:
  Result<void> open(const std::string& url) {
    PAWL_CHECK(end_.open(url, false));
    auto& db = end_.db();
    PAWL_TRY(const auto facts, server_facts(db));
    if (!facts.unsafe.empty() && !end_.unsafe()) {
      return fail(Code::store_unsafe,
                  fmt::format("the server has {}; set it on, or accept that with pawl_unsafe=1 in the URL",
                              facts.unsafe.front()));
    }
    PAWL_CHECK(migrate(db, end_.names(), Create::yes));
    PAWL_TRY(there_, was_opened());
    if (there_) return {};
    PAWL_CHECK(db.run("BEGIN ISOLATION LEVEL READ COMMITTED"));
    // Excludes an owner and a second transfer.
    PAWL_CHECK(db.run(end_.names()("LOCK TABLE {s}.shards, {s}.leases IN EXCLUSIVE MODE")));
    PAWL_TRY(there_, was_opened());
    return {};
  }
  /// An interrupted transfer leaves a schema that no owner has ever opened.
  bool holds_store() const override { return there_; }
  Result<TransferMeta> meta() override { return end_.meta(); }
  Result<std::int64_t> count(const TransferTable& table, Seq horizon) override {
    return end_.count(table, horizon);
  }
  Result<void> read(const TransferTable& table, Seq horizon, const TransferVisit& visit) override {
    return end_.read(table, horizon, visit);
  }

  Result<void> begin(const TransferMeta& meta) override {
    auto& db = end_.db();
    const auto& names = end_.names();
    for (Seq from = meta.horizon + 1; from <= meta.last; from += kPartition) {
      const auto table = fmt::format("{{s}}.log_p{}_{}", from, from + kPartition);
      db.queue(names(fmt::format("CREATE TABLE {} PARTITION OF {{s}}.log FOR VALUES FROM ({}) TO ({})", table,
                                 from, from + kPartition)));
    }
    queue_meta(db, names, "incarnation", meta.incarnation);
    for (const auto& [name, value] : {std::pair("high", meta.high),
                                      {"flushed", meta.flushed},
                                      {"horizon", meta.horizon},
                                      {"last_at", meta.last_at}}) {
      queue_meta(db, names, name, value);
    }
    // A store that was never opened would not count as a store.
    const auto epoch = std::max<std::int64_t>(meta.epoch, 1);
    db.queue(names("UPDATE {s}.shards SET epoch = $1"), Params().int8(epoch));
    db.queue(names("UPDATE {s}.leases SET epoch = $1"), Params().int8(epoch));
    PAWL_CHECK(db.sync());
    return {};
  }

  Result<void> begin_table(const TransferTable& table) override {
    table_ = &table;
    part_ = kCopyHeader;
    return end_.db().begin_copy_in(end_.names()(
        fmt::format("COPY {{s}}.{}({}) FROM STDIN (FORMAT binary)", table.name, columns_of(table))));
  }

  Result<void> write(const TransferRow& row) override {
    put_int2(part_, static_cast<std::int64_t>(row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) put(row[i], table_->columns[i].type);
    return part_.size() < kCopyPart ? Result<void>{} : send();
  }

  Result<void> end_table() override {
    part_ += kCopyTrailer;
    PAWL_CHECK(send());
    PAWL_CHECK(end_.db().end_copy_in());
    return {};
  }

  Result<void> finish() override {
    PAWL_CHECK(end_.db().run("COMMIT"));
    if (!end_.db().take_unreplicated()) return {};
    return fail(Code::store_io, "the copy is complete, but its standby has not confirmed it");
  }

 private:
  Result<bool> was_opened() {
    PAWL_TRY(const auto row, end_.db().run(end_.names()("SELECT epoch FROM {s}.shards")));
    return row.integer(0, 0) != 0;
  }

  Result<void> send() {
    PAWL_CHECK(end_.db().copy_in(part_));
    part_.clear();
    return {};
  }

  void put(const TransferField& field, ColumnType type) {
    if (field.null) return put_int4(part_, -1);
    switch (type) {
      case ColumnType::int2:
        put_int4(part_, 2);
        return put_int2(part_, field.number);
      case ColumnType::int4:
        put_int4(part_, 4);
        return put_int4(part_, static_cast<std::int32_t>(field.number));
      case ColumnType::int8:
        put_int4(part_, 8);
        return put_int8(part_, field.number);
      case ColumnType::boolean:
        put_int4(part_, 1);
        part_ += field.number != 0 ? '\1' : '\0';
        return;
      case ColumnType::text:
      case ColumnType::id:
        break;
    }
    const auto bytes =
        type == ColumnType::text ? escaped(field.bytes, buffer_) : std::string_view(field.bytes);
    put_int4(part_, static_cast<std::int32_t>(bytes.size()));
    part_ += bytes;
  }

  End end_;
  bool there_ = false;
  const TransferTable* table_ = nullptr;
  std::string part_;
  std::string buffer_;
};

}  // namespace

Result<std::unique_ptr<TransferOrigin>> open_transfer_source(const std::string& url) {
  auto source = std::make_unique<PostgresSource>();
  PAWL_CHECK(source->open(url));
  return source;
}

Result<std::unique_ptr<TransferTarget>> open_transfer_target(const std::string& url) {
  auto target = std::make_unique<PostgresTarget>();
  PAWL_CHECK(target->open(url));
  return target;
}

}  // namespace pawl::postgres
