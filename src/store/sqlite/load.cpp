// SPDX-License-Identifier: Apache-2.0
// Loading: the stored heads, combined with the log after their mark.
#include <fmt/format.h>

#include "store/sqlite/reader.hpp"

namespace pawl::sqlite {

Result<Replay> EntryReader::replay() {
  PAWL_TRY(const Seq mark, db_->integer("SELECT value FROM pawl_meta WHERE name = 'flushed'"));
  PAWL_TRY(auto rows,
           db_->prepare("SELECT seq, id, machine, kind, version, generation, at, state, extra, key, "
                        "partition, finished FROM log WHERE seq > ?1 ORDER BY seq"));
  rows.bind(1, mark);
  Replay replay;
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) return replay;
    PAWL_TRY(const auto id, rows.id(1));
    replay.add({.seq = rows.integer(0),
                .id = id,
                .machine = rows.integer(2),
                .kind = static_cast<EntryKind>(rows.integer(3)),
                .version = rows.integer(4),
                .generation = rows.integer(5),
                .at = rows.time(6),
                .state = rows.text(7),
                .extra = rows.text(8),
                .key = rows.text(9),
                .partition = rows.text(10),
                .finished = rows.integer(11) != 0});
  }
}

Result<std::string> EntryReader::extra_of(Seq seq) {
  const ResetGuard guard(extra_);
  extra_.bind(1, seq);
  PAWL_TRY(const bool found, extra_.row());
  if (!found) {
    return fail(Code::store_corrupt, fmt::format("a head points to entry {}, which is not in the log", seq),
                {{"seq", std::to_string(seq)}});
  }
  return std::string(extra_.text(0));
}

Result<void> EntryReader::load(const std::function<void(const StoredHead&)>& visit) {
  PAWL_TRY(const auto snapshot, Snapshot::begin(*db_));
  PAWL_TRY(auto replay, this->replay());
  PAWL_CHECK(load_heads(replay, visit));
  return replay.rest([&](StoredHead head, std::int64_t machine) -> Result<void> {
    PAWL_TRY(head.machine, machine_name(machine));
    visit(head);
    return {};
  });
}

Result<void> EntryReader::load_heads(Replay& replay, const std::function<void(const StoredHead&)>& visit) {
  PAWL_TRY(
      auto rows,
      db_->prepare("SELECT id, machine, key, partition, version, generation, seq, state, created_at, at, "
                   "finished, has_extra, kind, extra FROM heads"));
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) return {};
    StoredHead head;
    PAWL_TRY(head.id, rows.id(0));
    std::int64_t machine = rows.integer(1);
    head.key = rows.text(2);
    head.partition = rows.text(3);
    head.version = rows.integer(4);
    head.generation = rows.integer(5);
    head.seq = rows.integer(6);
    head.state = rows.text(7);
    head.created_at = rows.time(8);
    head.at = rows.time(9);
    head.finished = rows.integer(10) != 0;
    std::string extra;
    if (!replay.update(head, machine) && rows.integer(11) != 0) {
      const bool carried = !rows.is_null(12);
      if (carried) {
        head.extra = rows.text(13);
      } else {
        PAWL_TRY(extra, extra_of(head.seq));
        head.extra = extra;
      }
    }
    PAWL_TRY(head.machine, machine_name(machine));
    visit(head);
    replay.done_with(head.id);
  }
}

}  // namespace pawl::sqlite
