// SPDX-License-Identifier: Apache-2.0
// Retention: moving the horizon, forgetting instances, and dropping the partitions of the log that are
// completely below it. Each call does a bounded part in its own transaction, so that batches never wait long.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pawl/assert.hpp"
#include "store/postgres/postgres_store.hpp"

namespace pawl::postgres {
namespace {

/// Rows of the log per call.
constexpr std::int64_t kRows = 5000;

constexpr const char* kEndOfCut =
    "SELECT count(*), max(seq) FROM (SELECT seq FROM {s}.log WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT "
    "$3) cut";
/// Moves the newest entries below the cut into their heads; the others remain, unread, until their partition
/// is dropped.
constexpr const char* kCarry =
    "UPDATE {s}.heads h SET kind = l.kind, prev = l.prev, schema = l.schema, event = l.event, payload = "
    "l.payload, data = "
    "l.data, extra = l.extra FROM {s}.log l WHERE l.seq > $1 AND l.seq <= $2 AND h.id = l.id AND h.seq = "
    "l.seq";
constexpr const char* kForget =
    "WITH gone AS (SELECT string_to_array($1, ',')::uuid[] AS ids), beside AS (DELETE FROM {s}.ephemeral "
    "USING gone WHERE id = ANY(gone.ids)) DELETE FROM {s}.heads USING gone WHERE id = ANY(gone.ids)";

}  // namespace

Result<bool> PostgresStore::retain(Seq horizon) {
  PAWL_CHECK(status_.writable());
  const auto known = status_.info();
  horizon = std::min(horizon, known.last);
  auto& db = writer_.database();
  bool cut_done = horizon <= known.horizon;
  Seq end = known.horizon;
  PAWL_CHECK(writer_.between_batches([&]() -> Result<void> {
    if (cut_done) return {};
    db.queue(names_(kEndOfCut), Params().int8(known.horizon).int8(horizon).int8(kRows));
    PAWL_TRY(const auto results, db.sync());
    end = results[0].integer(0, 0) < kRows ? horizon : results[0].integer(0, 1);
    PAWL_ASSERT(end > known.horizon && end <= horizon, "a cut goes on, and stops at the horizon", end,
                horizon);
    db.queue(names_(kCarry), Params().int8(known.horizon).int8(end));
    queue_meta(db, names_, "horizon", end);
    writer_.queue_numbers();
    cut_done = end == horizon;
    return {};
  }));
  status_.cut(end);
  writer_.cut(end);
  if (cut_done) PAWL_CHECK(drop_partitions(end));
  return cut_done;
}

Result<void> PostgresStore::forget(std::span<const InstanceId> ids) {
  PAWL_CHECK(status_.writable());
  if (ids.empty()) return {};
  std::string list;
  for (const auto& id : ids) list += (list.empty() ? "" : ",") + id.to_string();
  // Every head and the mark are written before: opening replays no entry of a forgotten instance.
  return writer_.between_batches([&]() -> Result<void> {
    writer_.database().queue(names_(kForget), Params().text(list));
    PAWL_CHECK(writer_.database().sync());
    return {};
  });
}

/// Drops partitions that are completely below the horizon. A long read of the log holds a conflicting lock;
/// then the next call tries again.
Result<void> PostgresStore::drop_partitions(Seq horizon) {
  auto& db = writer_.database();
  db.queue(
      "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = "
      "to_regclass($1)",
      Params().text(names_("{s}.log")));
  PAWL_TRY(const auto results, db.sync());
  for (int i = 0; i < results[0].count(); ++i) {
    const auto name = results[0].text(i, 0);
    Seq end = 0;
    std::from_chars(name.data() + name.rfind('_') + 1, name.data() + name.size(), end);
    if (end == 0 || end > horizon + 1) continue;
    db.queue("BEGIN");
    db.queue("SET LOCAL lock_timeout = '200ms'");
    db.queue(names_("SELECT {s}.pawl_fence($1)"), Params().int8(ownership_.epoch()));
    db.queue(names_(fmt::format("DROP TABLE {{s}}.{}", name)));
    db.queue("COMMIT");
    auto dropped = db.sync();
    if (dropped) continue;
    db.roll_back();
    // The horizon is durable already; the next batch notices and replaces a lost connection.
    if (db.lost() || dropped.error().code() == Code::rolled_back) return {};
    return fail(std::move(dropped).error());
  }
  return {};
}

}  // namespace pawl::postgres
