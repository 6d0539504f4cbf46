// SPDX-License-Identifier: Apache-2.0
// Retention: cutting the log from below, forgetting finished instances, giving pages back. Each call does a
// bounded part in a transaction of its own, so that batches never wait long.
#include <algorithm>

#include "store/sqlite/sqlite_store.hpp"

namespace pawl::sqlite {
namespace {

/// Rows of the log, or heads, per call.
constexpr std::int64_t kRows = 5000;
/// Pages given back per call, and how few free ones are not worth it.
constexpr std::int64_t kPages = 2000;

Result<void> run(Database& db, std::string_view sql, std::int64_t parameter) {
  PAWL_TRY(auto statement, db.prepare(sql));
  statement.bind(1, parameter);
  return statement.run();
}

/// Where this call's cut ends: at most `kRows` entries from the log's beginning.
Result<Seq> end_of_cut(Database& db, Seq horizon) {
  PAWL_TRY(auto rows,
           db.prepare("SELECT count(*), max(seq) FROM (SELECT seq FROM log WHERE seq <= ?1 ORDER BY seq "
                      "LIMIT ?2)"));
  rows.bind(1, horizon);
  rows.bind(2, kRows);
  PAWL_CHECK(rows.row());
  return rows.integer(0) < kRows ? horizon : rows.integer(1);
}

/// The newest entries below the cut move into their heads, the others go.
Result<void> cut(Database& db, Seq end) {
  // The plus sign keeps the planner from reading all heads; the log's range is the small side.
  PAWL_CHECK(run(db,
                 "UPDATE heads SET kind = l.kind, prev = l.prev, schema = l.schema, event = l.event, "
                 "payload = l.payload, data = l.data, extra = l.extra FROM log AS l "
                 "WHERE l.seq <= ?1 AND heads.id = l.id AND +heads.seq = l.seq",
                 end));
  return run(db, "DELETE FROM log WHERE seq <= ?1", end);
}

constexpr const char* kForgettable =
    "SELECT id FROM heads WHERE finished AND seq <= ?1 ORDER BY seq LIMIT 5000";
constexpr const char* kGiveBack = "PRAGMA incremental_vacuum(2000)";
static_assert(kRows == 5000 && kPages == 2000, "the statements above name them");

/// Returns how many instances were forgotten.
Result<std::int64_t> forget_some(Database& db, Seq forget) {
  PAWL_CHECK(run(db, std::string("DELETE FROM ephemeral WHERE id IN (") + kForgettable + ")", forget));
  PAWL_CHECK(run(db, std::string("DELETE FROM heads WHERE id IN (") + kForgettable + ")", forget));
  return sqlite3_changes64(db.get());
}

/// Whether much of the file is free. A little is not given back: the log grows into it again.
Result<bool> is_roomy(Database& db) {
  PAWL_TRY(const auto unused, db.integer("PRAGMA freelist_count"));
  PAWL_TRY(const auto pages, db.integer("PRAGMA page_count"));
  return unused > kPages && unused > pages / 4;
}

}  // namespace

Result<bool> SqliteStore::retain(Seq horizon, Seq forget) {
  PAWL_CHECK(status_.writable());
  const auto known = status_.info();
  horizon = std::min(horizon, known.last);
  forget = std::min(forget, known.last);
  auto& db = writer_.database();
  bool cut_done = horizon <= known.horizon;
  bool forget_done = false;
  bool roomy = false;
  Seq end = known.horizon;
  PAWL_CHECK(writer_.between_batches([&]() -> Result<void> {
    PAWL_TRY(const auto forgotten, forget_some(db, forget));
    forget_done = forgotten < kRows;
    if (!cut_done) {
      PAWL_TRY(end, end_of_cut(db, horizon));
      PAWL_CHECK(cut(db, end));
      PAWL_CHECK(writer_.mark("horizon", end));
      PAWL_CHECK(writer_.mark_numbers());
      cut_done = end == horizon;
    } else {
      PAWL_TRY(roomy, is_roomy(db));
      if (roomy) PAWL_CHECK(db.run(kGiveBack));
    }
    return {};
  }));
  status_.cut(end);
  if (cut_done && !roomy) {
    PAWL_TRY(roomy, is_roomy(db));
  }
  return cut_done && forget_done && !roomy;
}

}  // namespace pawl::sqlite
