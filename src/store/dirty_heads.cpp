// SPDX-License-Identifier: Apache-2.0
#include "store/dirty_heads.hpp"

#include <algorithm>
#include <tuple>

namespace pawl {

void DirtyHeads::note(const EntryView& entry, Seq seq, std::int64_t machine) {
  batch_.push_back({.id = entry.id,
                    .seq = seq,
                    .begins = entry.kind == EntryKind::created ? seq : 0,
                    .version = entry.version,
                    .generation = entry.generation,
                    .at = entry.at,
                    .created_at = entry.at,
                    .machine = static_cast<std::int32_t>(machine),
                    .state = state_number(entry.state),
                    .finished = entry.finished,
                    .has_extra = !entry.extra.empty()});
}

void DirtyHeads::note_found(DirtyHead head, std::string_view state) {
  head.state = state_number(state);
  waiting_.push_back(head);
}

std::uint32_t DirtyHeads::state_number(std::string_view name) {
  auto found = state_numbers_.find(name);
  if (found == state_numbers_.end()) {
    found = state_numbers_.emplace(name, static_cast<std::uint32_t>(states_.size())).first;
    states_.emplace_back(name);
  }
  return found->second;
}

void DirtyHeads::take_batch() {
  waiting_.insert(waiting_.end(), batch_.begin(), batch_.end());
  batch_.clear();
}

void DirtyHeads::start_round(std::int64_t every, Seq newest) {
  if (round_.empty() && static_cast<std::int64_t>(waiting_.size()) >= every) build_round(newest);
}

void DirtyHeads::start_full_round(Seq newest) {
  const auto left = std::span(round_).subspan(position_);
  waiting_.insert(waiting_.end(), left.begin(), left.end());
  build_round(newest);
}

void DirtyHeads::build_round(Seq newest) {
  // In the order of the table each of its pages is touched once. Places are sorted instead of the heads
  // themselves, mostly by the first bytes of the ids alone.
  struct Place {
    std::uint64_t prefix;
    std::uint32_t index;
  };
  std::vector<Place> places;
  places.reserve(waiting_.size());
  for (const auto& head : waiting_) {
    std::uint64_t prefix = 0;
    for (std::size_t i = 0; i < sizeof prefix; ++i) prefix = prefix << 8 | head.id.bytes[i];
    places.push_back({prefix, static_cast<std::uint32_t>(places.size())});
  }
  std::ranges::sort(places, [&](const Place& a, const Place& b) {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    const auto& left = waiting_[a.index];
    const auto& right = waiting_[b.index];
    return std::tie(left.id, left.seq) < std::tie(right.id, right.seq);
  });
  round_.clear();
  for (const auto place : places) {
    const auto& head = waiting_[place.index];
    if (round_.empty() || round_.back().id != head.id) {
      round_.push_back(head);
    } else {
      auto& merged = round_.back();
      const auto older = merged;
      merged = head;
      if (older.begins != 0) {
        merged.begins = std::max(older.begins, head.begins);
        merged.created_at = older.created_at;
      }
    }
  }
  waiting_.clear();
  position_ = 0;
  round_mark_ = newest;
  round_states_ = states_;
}

std::span<const DirtyHead> DirtyHeads::slice(std::size_t most, std::size_t skip) const {
  const auto left = std::span(round_).subspan(position_);
  return left.subspan(std::min(skip, left.size()), std::min(most, left.size() - std::min(skip, left.size())));
}

void DirtyHeads::advance(std::size_t count) {
  position_ += count;
  if (position_ < round_.size()) return;
  round_.clear();
  position_ = 0;
}

}  // namespace pawl
