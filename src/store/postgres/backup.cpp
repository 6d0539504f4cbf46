// SPDX-License-Identifier: Apache-2.0
// Backups: a copy of one durable state in another database or schema, made while the owner stays in use.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "store/postgres/postgres_store.hpp"

namespace pawl::postgres {
namespace {

/// The tables that are copied unchanged, with a condition for their rows.
constexpr auto kTables = std::to_array<std::pair<const char*, const char*>>({
    {"machines", ""},
    {"heads", ""},
    {"ephemeral", ""},
    {"log", " WHERE seq > (SELECT value::bigint FROM {s}.pawl_meta WHERE name = 'horizon')"},
});

/// Source and target of a backup.
class Backup {
 public:
  Backup(Connection& from, const Names& source, Connection& to, const Names& target)
      : from_(from), source_(source), to_(to), target_(target) {}

  Result<void> run(const std::function<void(double)>& progress) {
    PAWL_TRY(const auto meta, read_meta(from_, source_));
    from_.queue(source_("SELECT max(seq), (SELECT count(*) FROM {s}.heads) FROM {s}.log"));
    PAWL_TRY(const auto sizes, from_.sync());
    const Seq last = std::max(sizes[0].integer(0, 0), meta.horizon);
    rows_ = last - meta.horizon + sizes[0].integer(0, 1);
    PAWL_CHECK(to_.run("BEGIN"));
    if (last > meta.horizon) {
      const auto table = target_(fmt::format("{{s}}.log_p{}_{}", meta.horizon + 1, last + 1));
      to_.queue(target_(fmt::format("CREATE TABLE {} PARTITION OF {{s}}.log FOR VALUES FROM ({}) TO ({})",
                                    table, meta.horizon + 1, last + 1)));
    }
    for (const auto& [name, value] : {std::pair("high", meta.high),
                                      {"flushed", meta.flushed},
                                      {"horizon", meta.horizon},
                                      {"last_at", meta.last_at.time_since_epoch().count()}}) {
      queue_meta(to_, target_, name, value);
    }
    PAWL_CHECK(to_.sync());
    for (const auto& [table, rows] : kTables) PAWL_CHECK(copy(table, rows, progress));
    PAWL_CHECK(to_.run("COMMIT"));
    if (progress) progress(1.0);
    return {};
  }

 private:
  Result<void> copy(const std::string& table, const std::string& rows,
                    const std::function<void(double)>& progress) {
    PAWL_CHECK(to_.begin_copy_in(target_("COPY {s}." + table + " FROM STDIN (FORMAT binary)")));
    PAWL_CHECK(from_.copy_raw(
        source_("SELECT * FROM {s}." + table + rows), [&](std::string_view part) -> Result<void> {
          PAWL_CHECK(to_.copy_in(part));
          constexpr std::int64_t kEvery = 1024;
          if (progress && ++copied_ % kEvery == 0) {
            progress(std::min(
                0.99, static_cast<double>(copied_) / static_cast<double>(std::max<std::int64_t>(rows_, 1))));
          }
          return {};
        }));
    PAWL_CHECK(to_.end_copy_in());
    return {};
  }

  Connection& from_;
  const Names& source_;
  Connection& to_;
  const Names& target_;
  std::int64_t rows_ = 0;
  std::int64_t copied_ = 0;
};

}  // namespace

Result<void> PostgresStore::backup(const std::string& path, const std::function<void(double)>& progress) {
  PAWL_CHECK(status_.usable());
  PostgresOptions wanted{.url = path, .schema = options_.schema};
  PAWL_TRY(auto address, Address::parse(wanted));
  const Names names(wanted.schema);
  PAWL_TRY(auto target, Connection::open(address, {.patience = options_.patience}));
  PAWL_TRY(const auto version, stored_version(target, names));
  if (version != 0) {
    return fail(Code::invalid_argument,
                fmt::format("the target {} of a backup must not contain a store", address.shown()));
  }
  PAWL_TRY(const auto source, Reader::open(options_, address_, names_));
  auto& db = source->database();
  PAWL_CHECK(migrate(target, names, Create::yes));
  PAWL_CHECK(db.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  auto done = Backup(db, names_, target, names).run(progress);
  if (done) return {};
  // An incomplete copy must not be mistaken for a store.
  target.roll_back();
  if (!target.lost()) static_cast<void>(target.run(names("DROP SCHEMA {s} CASCADE")));
  return done;
}

}  // namespace pawl::postgres
