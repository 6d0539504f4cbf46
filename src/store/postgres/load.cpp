// SPDX-License-Identifier: Apache-2.0
// Reading everything: the stored heads combined with the log after their mark, and the integrity check.
#include <fmt/format.h>

#include "store/log_check.hpp"
#include "store/postgres/reader.hpp"
#include "store/replay.hpp"

namespace pawl::postgres {
namespace {

constexpr const char* kTail =
    "SELECT seq, id, machine, kind, version, generation, at, state, extra, key, partition, finished FROM "
    "{s}.log WHERE "
    "seq > (SELECT value::bigint FROM {s}.pawl_meta WHERE name = 'flushed') ORDER BY seq";
constexpr const char* kHeads =
    "SELECT h.id, h.machine, h.key, h.partition, h.version, h.generation, h.seq, h.state, h.created_at, "
    "h.at, "
    "h.finished_seq IS NOT NULL, h.has_extra, CASE WHEN h.has_extra AND h.kind IS NULL THEN (SELECT l.extra "
    "FROM "
    "{s}.log l WHERE l.seq = h.seq) ELSE h.extra END FROM {s}.heads h";
constexpr const char* kCheckedLog =
    "SELECT seq, id, version, generation, prev, state, finished, kind, members, EXISTS(SELECT 1 FROM "
    "{s}.machines WHERE "
    "number = log.machine), at, extra IS NOT NULL FROM {s}.log WHERE seq > (SELECT value::bigint FROM "
    "{s}.pawl_meta WHERE name "
    "= 'horizon') "
    "ORDER BY seq";
constexpr const char* kCheckedHeads =
    "SELECT id, seq, version, generation, state, finished_seq IS NOT NULL, kind IS NOT NULL, EXISTS(SELECT 1 "
    "FROM "
    "{s}.machines WHERE number = heads.machine) FROM {s}.heads";

}  // namespace

Result<void> Reader::load(const std::function<void(const StoredHead&)>& visit) {
  return in_snapshot([&] { return load_in_transaction(visit); });
}

Result<void> Reader::load_in_transaction(const std::function<void(const StoredHead&)>& visit) {
  PAWL_CHECK(find_machines());
  Replay replay;
  PAWL_CHECK(db_.copy_out(names_(kTail), [&](const CopiedRow& row) -> Result<void> {
    PAWL_TRY(const auto id, row.id(1));
    const auto extra = row.text(8);
    const auto key = row.text(9);
    const auto partition = row.text(10);
    const auto state = row.text(7);
    replay.add({.seq = row.integer(0),
                .id = id,
                .machine = row.integer(2),
                .kind = static_cast<EntryKind>(row.integer(3)),
                .version = row.integer(4),
                .generation = row.integer(5),
                .at = row.time(6),
                .state = state,
                .extra = extra,
                .key = key,
                .partition = partition,
                .finished = row.integer(11) != 0});
    return {};
  }));
  PAWL_CHECK(db_.copy_out(names_(kHeads), [&](const CopiedRow& row) -> Result<void> {
    const auto key = row.text(2);
    const auto partition = row.text(3);
    const auto state = row.text(7);
    const auto extra = row.text(12);
    PAWL_TRY(const auto id, row.id(0));
    std::int64_t machine = row.integer(1);
    StoredHead head{.id = id,
                    .machine = {},
                    .key = key,
                    .partition = partition,
                    .version = row.integer(4),
                    .generation = row.integer(5),
                    .seq = row.integer(6),
                    .state = state,
                    .created_at = row.time(8),
                    .at = row.time(9),
                    .extra = extra,
                    .finished = row.integer(10) != 0};
    if (!replay.update(head, machine) && row.integer(11) != 0 && row.is_null(12)) {
      return fail(Code::store_corrupt,
                  fmt::format("a head points to entry {}, which is not in the log", head.seq),
                  {{"seq", std::to_string(head.seq)}});
    }
    PAWL_TRY(head.machine, machine_name(machine));
    visit(head);
    replay.done_with(id);
    return {};
  }));
  return replay.rest([&](StoredHead head, std::int64_t machine) -> Result<void> {
    PAWL_TRY(head.machine, machine_name(machine));
    visit(head);
    return {};
  });
}

Result<StoreCheck> Reader::check() {
  return in_snapshot([&] { return check_in_transaction(); });
}

Result<StoreCheck> Reader::check_in_transaction() {
  PAWL_TRY(const auto meta, read_meta(db_, names_));
  LogCheck check(meta.horizon, meta.flushed);
  PAWL_CHECK(db_.copy_out(names_(kCheckedLog), [&](const CopiedRow& row) -> Result<void> {
    PAWL_TRY(const auto id, row.id(1));
    const auto state = row.text(5);
    check.entry({.seq = row.integer(0),
                 .id = id,
                 .version = row.integer(2),
                 .generation = row.integer(3),
                 .prev = row.integer(4),
                 .state = state,
                 .finished = row.integer(6) != 0,
                 .created = row.integer(7) == std::to_underlying(EntryKind::created),
                 .has_extra = row.integer(11) != 0,
                 .members = row.integer(8),
                 .machine_known = row.integer(9) != 0,
                 .at = row.time(10)});
    return {};
  }));
  PAWL_CHECK(db_.copy_out(names_(kCheckedHeads), [&](const CopiedRow& row) -> Result<void> {
    PAWL_TRY(const auto id, row.id(0));
    const auto state = row.text(4);
    check.head({.id = id,
                .seq = row.integer(1),
                .version = row.integer(2),
                .generation = row.integer(3),
                .state = state,
                .finished = row.integer(5) != 0,
                .carries = row.integer(6) != 0,
                .machine_known = row.integer(7) != 0});
    return {};
  }));
  return check.finish();
}

}  // namespace pawl::postgres
