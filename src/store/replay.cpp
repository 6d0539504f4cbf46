// SPDX-License-Identifier: Apache-2.0
#include "store/replay.hpp"

#include <fmt/format.h>

namespace pawl {

void Replay::add(const ReplayEntry& entry) {
  auto& head = newest_[entry.id];
  head.seq = entry.seq;
  head.machine = entry.machine;
  head.version = entry.version;
  head.generation = entry.generation;
  head.at = entry.at;
  head.state = entry.state;
  head.extra = entry.extra;
  head.finished = entry.finished;
  if (entry.kind != EntryKind::created) return;
  head.begins = true;
  head.created_at = entry.at;
  head.key = entry.key;
  head.partition = entry.partition;
}

bool Replay::update(StoredHead& head, std::int64_t& machine) {
  // A round in progress has written rows that are newer than the mark; use the newer of the two.
  const auto found = newest_.find(head.id);
  if (found == newest_.end() || found->second.seq < head.seq) return false;
  const auto& newer = found->second;
  machine = newer.machine;
  head.version = newer.version;
  head.generation = newer.generation;
  head.seq = newer.seq;
  head.state = newer.state;
  head.at = newer.at;
  head.finished = newer.finished;
  head.extra = newer.extra;
  if (newer.begins) {
    head.created_at = newer.created_at;
    head.key = newer.key;
    head.partition = newer.partition;
  }
  return true;
}

Result<void> Replay::rest(
    const std::function<Result<void>(StoredHead head, std::int64_t machine)>& visit) const {
  for (const auto& [id, head] : newest_) {
    if (!head.begins) {
      return fail(Code::store_corrupt,
                  fmt::format("entry {} continues instance {}, which has no head", head.seq, id.to_string()),
                  {{"id", id.to_string()}, {"seq", std::to_string(head.seq)}});
    }
    PAWL_CHECK(visit({.id = id,
                      .machine = {},
                      .key = head.key,
                      .partition = head.partition,
                      .version = head.version,
                      .generation = head.generation,
                      .seq = head.seq,
                      .state = head.state,
                      .created_at = head.created_at,
                      .at = head.at,
                      .extra = head.extra,
                      .finished = head.finished},
                     head.machine));
  }
  return {};
}

}  // namespace pawl
