// SPDX-License-Identifier: Apache-2.0
// Retention: removing old entries, forgetting instances, releasing pages. Each call does a bounded part in
// its own transaction, so that batches never wait long.
#include <algorithm>
#include <span>

#include "pawl/assert.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace pawl::sqlite {
namespace {

/// Rows of the log per call.
constexpr std::int64_t kRows = 5000;
/// Pages released per call, and the number of free pages below which it is not worthwhile.
constexpr std::int64_t kPages = 2000;

Result<void> run(Database& db, std::string_view sql, std::int64_t parameter) {
  PAWL_TRY(auto statement, db.prepare(sql));
  statement.bind(1, parameter);
  return statement.run();
}

/// The last entry that this call removes: at most `kRows` entries from the beginning of the log.
Result<Seq> end_of_cut(Database& db, Seq horizon) {
  PAWL_TRY(auto rows,
           db.prepare("SELECT count(*), max(seq) FROM (SELECT seq FROM log WHERE seq <= ?1 ORDER BY seq "
                      "LIMIT ?2)"));
  rows.bind(1, horizon);
  rows.bind(2, kRows);
  PAWL_CHECK(rows.row());
  return rows.integer(0) < kRows ? horizon : rows.integer(1);
}

/// Moves the newest entries below the cut into their heads and deletes the others.
Result<void> cut(Database& db, Seq end) {
  // The plus sign keeps the planner from reading all heads; the range of the log is smaller.
  PAWL_CHECK(run(db,
                 "UPDATE heads SET kind = l.kind, prev = l.prev, schema = l.schema, event = l.event, "
                 "payload = l.payload, data = l.data, extra = l.extra FROM log AS l "
                 "WHERE l.seq <= ?1 AND heads.id = l.id AND +heads.seq = l.seq",
                 end));
  return run(db, "DELETE FROM log WHERE seq <= ?1", end);
}

constexpr const char* kGiveBack = "PRAGMA incremental_vacuum(2000)";
static_assert(kPages == 2000, "the statement above contains it");

Result<void> forget_heads(Database& db, std::span<const InstanceId> ids) {
  PAWL_TRY(auto values, db.prepare("DELETE FROM ephemeral WHERE id = ?1"));
  PAWL_TRY(auto heads, db.prepare("DELETE FROM heads WHERE id = ?1"));
  for (const auto& id : ids) {
    values.bind_blob(1, id.bytes);
    PAWL_CHECK(values.run());
    heads.bind_blob(1, id.bytes);
    PAWL_CHECK(heads.run());
  }
  return {};
}

/// Whether much of the file is free. A little is not released: the log will use it again.
Result<bool> is_roomy(Database& db) {
  PAWL_TRY(const auto unused, db.integer("PRAGMA freelist_count"));
  PAWL_TRY(const auto pages, db.integer("PRAGMA page_count"));
  return unused > kPages && unused > pages / 4;
}

}  // namespace

Result<bool> SqliteStore::retain(Seq horizon) {
  PAWL_CHECK(status_.writable());
  const auto known = status_.info();
  horizon = std::min(horizon, known.last);
  auto& db = writer_.database();
  bool cut_done = horizon <= known.horizon;
  bool roomy = false;
  Seq end = known.horizon;
  PAWL_CHECK(writer_.between_batches([&]() -> Result<void> {
    if (!cut_done) {
      PAWL_TRY(end, end_of_cut(db, horizon));
      PAWL_ASSERT(end > known.horizon && end <= horizon, "a cut goes on, and stops at the horizon", end,
                  horizon);
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
  return cut_done && !roomy;
}

Result<void> SqliteStore::forget(std::span<const InstanceId> ids) {
  PAWL_CHECK(status_.writable());
  if (ids.empty()) return {};
  // Every head and the mark are written before: opening replays no entry of a forgotten instance.
  return writer_.between_batches([&] { return forget_heads(writer_.database(), ids); });
}

}  // namespace pawl::sqlite
