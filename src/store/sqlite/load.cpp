// SPDX-License-Identifier: Apache-2.0
// Loading: the heads as written down, brought up to date by the log after their mark.
#include <fmt/format.h>

#include <unordered_map>

#include "store/sqlite/reader.hpp"

namespace pawl::sqlite {

/// What the log says about an instance after the mark.
struct EntryReader::Replayed {
  Seq seq = 0;
  std::int64_t machine = 0;
  std::int64_t version = 0;
  std::int64_t generation = 0;
  Time at{};
  Time created_at{};
  std::string state;
  std::string extra;
  std::string key;
  std::string partition;
  bool finished = false;
  bool begins = false;
};

Result<EntryReader::Replay> EntryReader::replay() {
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
    auto& head = replay[id];
    head.seq = rows.integer(0);
    head.machine = rows.integer(2);
    head.version = rows.integer(4);
    head.generation = rows.integer(5);
    head.at = rows.time(6);
    head.state = rows.text(7);
    head.extra = rows.text(8);
    head.finished = rows.integer(11) != 0;
    if (rows.integer(3) == std::to_underlying(EntryKind::created)) {
      if (!head.begins) head.created_at = head.at;
      head.begins = true;
      head.key = rows.text(9);
      head.partition = rows.text(10);
    }
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
  for (const auto& [id, head] : replay) {
    if (!head.begins) {
      return fail(Code::store_corrupt,
                  fmt::format("entry {} continues instance {}, which has no head", head.seq, id.to_string()),
                  {{"id", id.to_string()}, {"seq", std::to_string(head.seq)}});
    }
    PAWL_TRY(const auto machine, machine_name(head.machine));
    visit({.id = id,
           .machine = machine,
           .key = head.key,
           .partition = head.partition,
           .version = head.version,
           .generation = head.generation,
           .seq = head.seq,
           .state = head.state,
           .created_at = head.created_at,
           .at = head.at,
           .extra = head.extra,
           .finished = head.finished});
  }
  return {};
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
    // A round under way writes rows that are newer than the mark already, so the newer of the two counts.
    const auto found = replay.find(head.id);
    if (found != replay.end() && found->second.seq >= head.seq) {
      auto& newer = found->second;
      machine = newer.machine;
      head.version = newer.version;
      head.generation = newer.generation;
      head.seq = newer.seq;
      head.state = newer.state;
      head.at = newer.at;
      head.finished = newer.finished;
      head.extra = newer.extra;
      if (newer.begins) {
        head.key = newer.key;
        head.partition = newer.partition;
      }
    } else if (rows.integer(11) != 0) {
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
    if (found != replay.end()) replay.erase(found);
  }
}

}  // namespace pawl::sqlite
