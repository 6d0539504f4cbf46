// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/dirty_heads.hpp"

#include <algorithm>
#include <iterator>

namespace pawl::sqlite {

void DirtyHeads::note(const EntryView& entry, Seq seq, std::int64_t machine) {
  auto& [id, head] = batch_.emplace_back();
  id = entry.id;
  head.seq = seq;
  head.machine = machine;
  head.version = entry.version;
  head.generation = entry.generation;
  head.at = entry.at;
  head.state = entry.state;
  head.finished = entry.finished;
  head.has_extra = !entry.extra.empty();
  if (entry.kind == EntryKind::created) {
    head.begins = true;
    head.created_at = entry.at;
    head.key = entry.key;
    head.partition = entry.partition;
  }
}

void DirtyHeads::wait(const InstanceId& id, DirtyHead head) {
  auto [place, fresh] = waiting_.try_emplace(id);
  auto& other = place->second;
  if (fresh) {
    other = std::move(head);
    return;
  }
  auto& older = other.seq < head.seq ? other : head;
  auto& newer = other.seq < head.seq ? head : other;
  if (older.begins && !newer.begins) {
    newer.begins = true;
    newer.created_at = older.created_at;
    newer.key = std::move(older.key);
    newer.partition = std::move(older.partition);
  }
  if (&newer == &head) other = std::move(head);
}

void DirtyHeads::take_batch() {
  since_round_ += static_cast<std::int64_t>(batch_.size());
  for (auto& [id, head] : batch_) wait(id, std::move(head));
  batch_.clear();
}

void DirtyHeads::start_round(std::int64_t every, Seq newest) {
  if (round_.empty() && since_round_ >= every) build_round(newest);
}

void DirtyHeads::start_full_round(Seq newest) {
  for (; position_ < round_.size(); ++position_) {
    wait(round_[position_].first, std::move(round_[position_].second));
  }
  build_round(newest);
}

void DirtyHeads::build_round(Seq newest) {
  round_.clear();
  round_.reserve(waiting_.size());
  std::ranges::move(waiting_, std::back_inserter(round_));
  // In the order of the table each of its pages is touched once.
  std::ranges::sort(round_, {}, &Row::first);
  waiting_.clear();
  since_round_ = 0;
  position_ = 0;
  round_mark_ = newest;
}

std::span<const DirtyHeads::Row> DirtyHeads::slice(std::size_t most) const {
  return std::span(round_).subspan(position_, std::min(most, round_.size() - position_));
}

void DirtyHeads::advance(std::size_t count) {
  position_ += count;
  if (position_ < round_.size()) return;
  round_.clear();
  position_ = 0;
}

}  // namespace pawl::sqlite
