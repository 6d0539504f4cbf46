// SPDX-License-Identifier: Apache-2.0
// The integrity check: first SQLite's own, then the log, then the heads against the log.
#include "store/log_check.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace pawl::sqlite {
namespace {

Result<void> check_pages(Database& db, LogCheck& check) {
  PAWL_TRY(auto rows, db.prepare("PRAGMA integrity_check"));
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) return {};
    if (rows.text(0) != "ok") check.problem("{}", rows.text(0));
  }
}

Result<void> check_log(Database& db, LogCheck& check) {
  PAWL_TRY(auto rows,
           db.prepare("SELECT seq, id, version, generation, prev, state, finished, kind, members, machine IN "
                      "(SELECT number FROM machines), at, extra IS NOT NULL FROM log ORDER BY seq"));
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) return {};
    PAWL_TRY(const auto id, rows.id(1));
    check.entry({.seq = rows.integer(0),
                 .id = id,
                 .version = rows.integer(2),
                 .generation = rows.integer(3),
                 .prev = rows.integer(4),
                 .state = rows.text(5),
                 .finished = rows.integer(6) != 0,
                 .created = rows.integer(7) == std::to_underlying(EntryKind::created),
                 .has_extra = rows.integer(11) != 0,
                 .members = rows.integer(8),
                 .machine_known = rows.integer(9) != 0,
                 .at = rows.time(10)});
  }
}

Result<void> check_heads(Database& db, LogCheck& check) {
  PAWL_TRY(auto rows, db.prepare("SELECT id, seq, version, generation, state, finished, kind IS NOT NULL, "
                                 "machine IN (SELECT number FROM machines) FROM heads"));
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) return {};
    PAWL_TRY(const auto id, rows.id(0));
    check.head({.id = id,
                .seq = rows.integer(1),
                .version = rows.integer(2),
                .generation = rows.integer(3),
                .state = rows.text(4),
                .finished = rows.integer(5) != 0,
                .carries = rows.integer(6) != 0,
                .machine_known = rows.integer(7) != 0});
  }
}

}  // namespace

Result<StoreCheck> SqliteStore::check() {
  PAWL_CHECK(status_.usable());
  // Not from the pool: this takes long and the pool is small.
  PAWL_TRY(const auto reader, Reader::open(options_));
  auto& db = reader->database();
  PAWL_TRY(const auto snapshot, Snapshot::begin(db));
  PAWL_TRY(const auto meta, read_meta(db));
  LogCheck check(meta.horizon, meta.flushed);
  PAWL_CHECK(check_pages(db, check));
  // If SQLite finds damage, the tables cannot be read reliably.
  if (!check.sound()) return check.finish();
  PAWL_CHECK(check_log(db, check));
  PAWL_CHECK(check_heads(db, check));
  return check.finish();
}

Result<StoreRepair> SqliteStore::repair() {
  PAWL_TRY(const auto found, check());
  StoreRepair result;
  if (!found.missing.empty()) PAWL_CHECK(writer_.rebuild_heads(found.missing));
  for (const auto& head : found.missing) result.repaired.push_back(repaired_sentence(head));
  PAWL_TRY(result.left, check());
  return result;
}

}  // namespace pawl::sqlite
