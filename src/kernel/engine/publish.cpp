// SPDX-License-Identifier: Apache-2.0
// The lane: publishes what has become durable. Heads, counts and partitions change only here and where
// instances are forgotten (operate.cpp), under the unique lock.
#include <algorithm>
#include <utility>

#include "kernel/engine/core.hpp"
#include "pawl/assert.hpp"

namespace pawl {

/// Updates the heads to the committed batch, then acts on the changes.
void EngineCore::publish(Batch& batch) {
  PAWL_ASSERT(!batch.lost && !poisoned_, "a failed batch is not published");
  struct Acted {
    InstanceId id;
    std::uint16_t machine;
    std::unique_ptr<Extras> before;
  };
  std::vector<Acted> acted;
  {
    const std::unique_lock lock(heads_mutex_);
    for (auto& draft : batch.drafts) {
      if (!draft.newest) continue;
      auto* head = heads_.find(draft.id);
      const bool had = head != nullptr && head->extras != nullptr;
      if (had || !draft.extras.empty()) {
        acted.push_back({draft.id, draft.machine, had ? std::move(head->extras) : nullptr});
      }
      publish_draft(draft, head);
    }
    evict();
    if (heads_.slots() > 2 * heads_.size() + 1024) heads_.compact();
  }
  const auto last = store_->info().last;
  PAWL_ASSERT(last >= durable_seq_, "the durable log only grows", last);
  durable_seq_ = last;
  for (const auto& item : acted)
    act(item.id, item.machine, item.before.get(), heads_.find(item.id)->extras.get());
  release_unused(batch);
  wake_timers();
  wake_readers(batch);
  wake_watchers(batch);
  schedule_maintenance();
}

void EngineCore::publish_draft(Draft& draft, Head* head) {
  PAWL_ASSERT(draft.exists && draft.seq > 0 && draft.version > 0, "a published draft has an entry", draft.seq,
              draft.version);
  PAWL_ASSERT(
      head == nullptr || (draft.version > head->version && draft.seq > head->seq && draft.at > head->at),
      "a head only moves forward", draft.version, draft.seq);
  if (head == nullptr || head->created_at != draft.created_at) {
    Head made;
    made.id = draft.id;
    made.machine = draft.machine;
    made.key = CompactText(draft.key);
    made.created_at = draft.created_at;
    made.partition = static_cast<std::uint32_t>(partition_number(draft.partition));
    // The next generation is listed after the others.
    if (head != nullptr) remove_head(*head);
    if (made.partition != 0) partition_members_[made.partition].push_back(draft.id);
    head = &heads_.insert(std::move(made));
  } else {
    uncount(*head);
  }
  head->state = draft.state;
  head->generation = static_cast<std::uint32_t>(draft.generation);
  head->version = draft.version;
  head->seq = draft.seq;
  head->at = draft.at;
  auto replaced = std::exchange(head->data, draft.data);
  if (replaced) retired_.push_back(std::move(replaced));
  head->extras = draft.extras.empty() ? nullptr : std::make_unique<Extras>(std::move(draft.extras));
  draft.published = head->extras.get();
  if (head->partition != 0) partition_seqs_[head->partition] = draft.seq;
  cached_bytes_ += head->data.bytes();
  ++counts_[{head->machine, head->state}];
}

/// Removes a head from the counts before it changes or goes.
void EngineCore::uncount(const Head& head) {
  auto& count = counts_[{head.machine, head.state}];
  PAWL_ASSERT(count > 0, "an instance is counted in its state", head.machine, head.state);
  --count;
  PAWL_ASSERT(cached_bytes_ >= head.data.bytes(), "cached data is counted", cached_bytes_, head.data.bytes());
  cached_bytes_ -= head.data.bytes();
}

void EngineCore::remove_head(const Head& head) {
  uncount(head);
  if (head.partition != 0) std::erase(partition_members_[head.partition], head.id);
  heads_.erase(InstanceId(head.id));
}

std::size_t EngineCore::partition_number(std::string_view partition) {
  if (partition.empty()) return 0;
  const auto [place, added] =
      partition_numbers_.emplace(partition, static_cast<std::uint32_t>(partitions_.size()));
  if (added) {
    partitions_.emplace_back(partition);
    partition_seqs_.push_back(0);
    partition_members_.emplace_back();
  }
  PAWL_ASSERT(place->second < partitions_.size() && partitions_.size() == partition_seqs_.size() &&
                  partitions_.size() == partition_members_.size(),
              "a partition has a name, a newest entry and members", place->second);
  return place->second;
}

/// Evicts cached data round-robin until the limit holds; it is durable and can be read again.
void EngineCore::evict() {
  for (std::size_t steps = 0; cached_bytes_ > options_.cache_bytes && steps < 2 * heads_.slots(); ++steps) {
    eviction_hand_ = eviction_hand_ + 1 < heads_.slots() ? eviction_hand_ + 1 : 0;
    auto& head = heads_.slot(eviction_hand_);
    PAWL_ASSERT(cached_bytes_ >= head.data.bytes(), "cached data is counted", cached_bytes_);
    cached_bytes_ -= head.data.bytes();
    head.data = {};
  }
}

}  // namespace pawl
