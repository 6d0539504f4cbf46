// SPDX-License-Identifier: Apache-2.0
#include "store/dirty_heads.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

namespace pawl {
namespace {

/// Combines two entries of one instance. A generation that began with either is still to be written.
DirtyHead merged(const DirtyHead& a, const DirtyHead& b) {
  const auto& [older, newer] = a.seq < b.seq ? std::tie(a, b) : std::tie(b, a);
  auto both = newer;
  if (newer.begins != 0) return both;
  both.begins = older.begins;
  both.created_at = older.created_at;
  return both;
}

}  // namespace

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
  gather(head);
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
  for (const auto& head : batch_) gather(head);
  batch_.clear();
}

/// The slot of the instance in the index, or the free slot for it.
std::size_t DirtyHeads::probe(const InstanceId& id) const {
  const auto mask = index_.size() - 1;
  auto at = std::hash<InstanceId>{}(id)&mask;
  while (index_[at] != 0 && waiting_[index_[at] - 1].id != id) at = (at + 1) & mask;
  return at;
}

void DirtyHeads::grow_index() {
  index_.assign(std::max<std::size_t>(2 * index_.size(), 64), 0);
  for (std::size_t place = 0; place < waiting_.size(); ++place)
    index_[probe(waiting_[place].id)] = static_cast<std::uint32_t>(place + 1);
}

/// Adds a head to the next round.
void DirtyHeads::gather(const DirtyHead& head) {
  if (2 * (waiting_.size() + 1) > index_.size()) grow_index();
  ++gathered_;
  auto& place = index_[probe(head.id)];
  if (place != 0) {
    auto& known = waiting_[place - 1];
    known = merged(known, head);
    return;
  }
  waiting_.push_back(head);
  place = static_cast<std::uint32_t>(waiting_.size());
}

void DirtyHeads::start_round(std::int64_t every, Seq newest) {
  if (round_.empty() && gathered_ >= every) build_round(newest);
}

void DirtyHeads::start_full_round(Seq newest) {
  for (const auto& left : std::span(round_).subspan(position_)) gather(left);
  build_round(newest);
}

void DirtyHeads::build_round(Seq newest) {
  // In table order each page is touched once. Positions are sorted instead of the heads themselves, mostly by
  // the first bytes of the ids.
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
    return a.prefix != b.prefix ? a.prefix < b.prefix : waiting_[a.index].id < waiting_[b.index].id;
  });
  round_.clear();
  round_.reserve(places.size());
  for (const auto place : places) round_.push_back(waiting_[place.index]);
  waiting_.clear();
  std::ranges::fill(index_, 0);
  gathered_ = 0;
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
