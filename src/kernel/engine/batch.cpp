// SPDX-License-Identifier: Apache-2.0
// The lane: takes requests, decides them on drafts, makes the batch durable, publishes it.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/engine/core.hpp"
#include "pawl/assert.hpp"
#include "pawl/codec.hpp"

namespace pawl {
namespace {

/// The drafts of one transaction: instances that an earlier operation of it has touched come first.
Draft* find_staged(std::vector<Draft>& staged, const InstanceId& id) {
  const auto found = std::ranges::find(staged, id, &Draft::id);
  return found == staged.end() ? nullptr : &*found;
}

/// A refusal by the store concerns one transaction; after any other error the open batch is gone.
bool is_refusal(Code code) {
  return code == Code::sql_refused || code == Code::sql_failed || code == Code::row_expectation_failed ||
         code == Code::too_large || code == Code::request_id_reused || code == Code::invalid_argument;
}

}  // namespace

void EngineCore::enqueue(Request request) {
  std::unique_lock lock(queue_mutex_);
  const bool refused = !request.internal && queue_.size() >= options_.queue;
  if (stopped_ || refused) {
    lock.unlock();
    if (!request.done) return;
    request.done(stopped_ ? fail(Code::stopped, "the engine is stopping and takes no new requests")
                          : fail(Code::overloaded, fmt::format("{} requests wait already", options_.queue),
                                 {{"limit", std::to_string(options_.queue)}}));
    return;
  }
  queue_.push_back(std::move(request));
  // Posted under the lock: closing takes it before the lane goes away.
  if (!std::exchange(drain_scheduled_, true)) lane_->post([this] { drain(); });
}

void EngineCore::drain() {
  std::vector<Request> requests;
  bool more = false;
  {
    const std::lock_guard lock(queue_mutex_);
    const auto count = std::min(queue_.size(), options_.batch);
    requests.reserve(count);
    std::move(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count),
              std::back_inserter(requests));
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
    more = !queue_.empty();
    drain_scheduled_ = more;
  }
  run_batch(std::move(requests));
  if (more) lane_->post([this] { drain(); });
}

void EngineCore::run_batch(std::vector<Request> requests) {
  Batch batch;
  batch.answers.reserve(requests.size());
  batch.by_id.reserve(requests.size());
  batch.drafts.reserve(requests.size());
  // A refusal rests on what is in memory, which counts only while this is the owner.
  const auto owner = store_->still_owner();
  for (auto& request : requests) {
    Result<std::vector<Instance>> outcome;
    if (poisoned_) {
      outcome = fail(*poisoned_);
    } else if (!owner) {
      outcome = fail(owner.error());
    } else {
      outcome = decide_or_refuse(batch, request);
    }
    const auto code = outcome ? std::nullopt : std::optional(outcome.error().code());
    if (batch.lost) {
      const auto error = outcome.error();
      batch.answers.push_back({std::move(request), std::move(outcome)});
      fail_batch(std::exchange(batch, {}), error);
    } else if ((code == Code::store_io || (!poisoned_ && !owner)) && request.internal) {
      // The instance's data could not be read, or a lease has run out and may be prolonged yet; what the
      // engine itself wants is not lost by that.
      again_later(std::move(request));
    } else {
      if (code) ++(code == Code::version_conflict ? conflicts_ : refused_);
      batch.answers.push_back({std::move(request), std::move(outcome)});
    }
  }
  const auto flushed = flush_ephemerals(batch);
  if (batch.dirty || !flushed) {
    if (const auto committed = flushed ? commit_batch(batch) : flushed; !committed) {
      fail_batch(std::move(batch), committed.error());
      return;
    }
    publish(batch);
  }
  runtime_.fault("engine.answer");
  for (auto& answer : batch.answers) {
    if (answer.request.done) answer.request.done(std::move(answer.outcome));
  }
}

Result<void> EngineCore::commit_batch(Batch& batch) {
  runtime_.fault("engine.commit");
  PAWL_CHECK(store_->commit());
  runtime_.fault("engine.committed");
  transitions_ += batch.entries;
  ++commits_;
  return {};
}

/// Nothing of the batch may be seen: everybody in it gets the error. Where the store goes on, what the engine
/// itself wanted waits for the disk to have room again, or for the database to be there again.
void EngineCore::fail_batch(Batch batch, const Error& error) {
  const bool goes_on = error.code() == Code::disk_full || error.code() == Code::rolled_back;
  const bool fenced = error.code() == Code::store_fenced;
  if (!goes_on) {
    poisoned_ =
        fenced ? error
               : Error(Code::store_poisoned, "the store failed and must be reopened: " + error.to_string());
    options_.log.error("store poisoned", {{"error", error.to_string()}});
    end_waiting(*poisoned_);
  }
  forget_permits(batch.reserved);
  // A store that was poisoned before took nothing of this batch.
  const bool known = goes_on || fenced || (error.code() == Code::store_poisoned && !batch.dirty);
  const auto told =
      known ? error
            : Error(Code::outcome_unknown,
                    "the store failed while committing; open it again to see: " + error.to_string());
  for (auto& answer : batch.answers) {
    if (answer.request.internal && goes_on) {
      again_later(std::move(answer.request));
    } else if (answer.request.done) {
      answer.request.done(fail(told));
    }
  }
  if (goes_on) restore_ephemerals(std::move(batch.ephemerals));
}

/// All together and in their order, so that work which ended before a deadline still goes before it.
void EngineCore::again_later(Request request) {
  postponed_.push_back(std::move(request));
  if (postponed_.size() > 1) return;
  lane_->after(kPause, [this] {
    for (auto& again : std::exchange(postponed_, {})) enqueue(std::move(again));
  });
}

/// The outcome of an earlier transaction with the same request id, if there is one.
Result<std::optional<std::vector<Instance>>> EngineCore::repeated(const Request& request) {
  if (!request.tag) return std::nullopt;
  PAWL_TRY(auto found, store_->find_request(request.tag->id));
  if (!found) return std::nullopt;
  if (found->content != request.tag->content) {
    return fail(Code::request_id_reused, "this request id was used before with other content");
  }
  PAWL_ASSERT(found->entries.size() == request.targets.size(), "the same content has as many entries");
  std::vector<Instance> outcome;
  for (auto& entry : found->entries) {
    entry.key = request.targets[outcome.size()].key;
    PAWL_TRY(auto instance, to_instance(std::move(entry)));
    outcome.push_back(std::move(instance));
  }
  return outcome;
}

Result<Draft> EngineCore::draft_of(const Batch& batch, const Target& target) {
  if (const auto found = batch.by_id.find(target.id); found != batch.by_id.end())
    return batch.drafts[found->second];
  Draft draft{.id = target.id, .machine = target.machine, .key = target.key};
  const auto* head = heads_.find(target.id);
  if (head == nullptr) return draft;
  if (!target.key.empty() && head->key.view() != target.key) {
    return fail(Code::duplicate_instance,
                fmt::format("the keys \"{}\" and \"{}\" have the same id", target.key, head->key.view()));
  }
  draft.exists = true;
  draft.machine = head->machine;
  draft.state = head->state;
  draft.generation = head->generation;
  draft.version = head->version;
  draft.seq = head->seq;
  draft.created_at = head->created_at;
  draft.at = head->at;
  draft.key = head->key.view();
  draft.partition = partitions_[head->partition];
  if (head->extras) draft.extras = *head->extras;
  if (head->data.empty()) {
    PAWL_TRY(draft.data, load_data(head->id, head->machine, head->seq));
  } else {
    draft.data = head->data.view();
  }
  return draft;
}

Result<void> EngineCore::check_partition(const std::vector<Draft>& staged) const {
  for (const auto& draft : staged) {
    const auto& first = staged.front();
    if (draft.partition == first.partition && (!draft.partition.empty() || draft.id == first.id)) continue;
    return fail(Code::wrong_partition,
                fmt::format("a transaction stays within one partition: \"{}\" is in {}, \"{}\" in {}",
                            first.key, first.partition.empty() ? "its own" : first.partition, draft.key,
                            draft.partition.empty() ? "its own" : draft.partition));
  }
  return {};
}

/// Decides one transaction. An event of the engine's own that the store refuses, by a constraint of the
/// application's rows for example, is recorded as refused like one that the machine refuses.
Result<std::vector<Instance>> EngineCore::decide_or_refuse(Batch& batch, Request& request) {
  auto outcome = decide_request(batch, request);
  if (outcome || !request.internal || request.targets.size() != 1) return outcome;
  if (!is_refusal(outcome.error().code()) || !refuse(request.targets.front().happening, outcome.error()))
    return outcome;
  return decide_request(batch, request);
}

/// Decides one transaction and adds it to the open batch; an error leaves the batch as it was, or lost.
Result<std::vector<Instance>> EngineCore::decide_request(Batch& batch, Request& request) {
  PAWL_TRY(auto earlier, repeated(request));
  if (earlier) return *std::move(earlier);
  if (request.guard) {
    const auto open = batch.partitions.find(request.guard->partition);
    const auto seq = open != batch.partitions.end() ? open->second : partition_seq(request.guard->partition);
    if (seq != request.guard->seq) {
      return fail(Code::version_conflict,
                  fmt::format("partition \"{}\" changed since it was read", request.guard->partition),
                  {{"partition", request.guard->partition}});
    }
  }
  std::vector<Draft> staged;
  std::vector<std::optional<Change>> changes;
  staged.reserve(request.targets.size());
  changes.reserve(request.targets.size());
  for (const auto& target : request.targets) {
    if (find_staged(staged, target.id) != nullptr) {
      return fail(Code::invalid_argument, fmt::format("a transaction names \"{}\" twice", target.key));
    }
    PAWL_TRY(auto draft, draft_of(batch, target));
    PAWL_TRY(auto change, decide(registry_, draft, target.happening, log_time()));
    staged.push_back(std::move(draft));
    changes.push_back(std::move(change));
  }
  PAWL_CHECK(check_partition(staged));
  if (std::ranges::none_of(changes, [](const auto& change) { return change.has_value(); }))
    return std::vector<Instance>{};

  const auto reserved_before = batch.reserved.size();
  for (std::size_t i = 0; i < staged.size(); ++i) {
    if (changes[i]) reserve_permits(batch, staged[i], *changes[i]);
  }
  auto first = write(staged, changes, request);
  if (!first) {
    forget_permits(std::span(batch.reserved).subspan(reserved_before));
    batch.reserved.resize(reserved_before);
    batch.lost = !is_refusal(first.error().code());
    return fail(std::move(first).error());
  }

  std::vector<Instance> outcome;
  auto seq = *first;
  for (std::size_t i = 0; i < staged.size(); ++i) {
    if (!changes[i]) continue;
    staged[i].seq = seq++;
    if (request.done) outcome.push_back(to_instance(staged[i]));
    if (!staged[i].partition.empty()) batch.partitions[staged[i].partition] = staged[i].seq;
    const auto [place, added] = batch.by_id.emplace(staged[i].id, batch.drafts.size());
    if (added) {
      batch.drafts.push_back(std::move(staged[i]));
    } else {
      batch.drafts[place->second] = std::move(staged[i]);
    }
    ++batch.entries;
  }
  batch.dirty = true;
  return outcome;
}

/// New work takes a permit now if one is free; then its first attempt is recorded with the work itself.
void EngineCore::reserve_permits(Batch& batch, Draft& draft, const Change& change) {
  for (const auto number : change.new_work) {
    auto& work = *std::ranges::find(draft.extras.work, number, &WorkRecord::number);
    const WorkKey key{draft.id, number};
    const std::lock_guard lock(pools_mutex_);
    const auto granted = pool_of(draft.machine, work.name).request(holder_of(key), 1, 1);
    PAWL_ASSERT(granted.has_value(), "a new piece of work is new to its pool");
    work.attempt = granted->empty() ? 0 : 1;
    batch.reserved.push_back(key);
  }
}

Result<Seq> EngineCore::write(const std::vector<Draft>& staged,
                              const std::vector<std::optional<Change>>& changes, const Request& request) {
  std::vector<EntryView> entries;
  entries.reserve(staged.size());
  std::vector<std::string> extras(staged.size());
  std::vector<Sql> sql = request.sql;
  for (std::size_t i = 0; i < staged.size(); ++i) {
    if (!changes[i]) continue;
    const auto& draft = staged[i];
    const auto& change = *changes[i];
    if (!draft.extras.empty()) {
      PAWL_TRY(extras[i], encode(draft.extras));
    }
    const bool begins = change.kind == EntryKind::created;
    entries.push_back({.id = draft.id,
                       .kind = change.kind,
                       .machine = registry_.machine_name(draft.machine),
                       .key = begins ? std::string_view(draft.key) : std::string_view{},
                       .partition = begins ? std::string_view(draft.partition) : std::string_view{},
                       .version = draft.version,
                       .generation = draft.generation,
                       .prev = draft.seq,
                       .state = registry_.state_name(draft.machine, draft.state),
                       .schema = registry_.definition(draft.machine).schema,
                       .at = draft.at,
                       .event = change.event,
                       .payload = change.payload,
                       .data = draft.data,
                       .extra = extras[i],
                       .finished = registry_.finished(draft.machine, draft.state)});
    sql.insert(sql.end(), change.sql.begin(), change.sql.end());
  }
  return store_->apply({.entries = entries, .sql = sql, .request = request.tag});
}

/// Brings the heads up to what has just become durable, then acts on it.
void EngineCore::publish(Batch& batch) {
  struct Acted {
    InstanceId id;
    std::uint16_t machine;
    std::unique_ptr<Extras> before;
  };
  std::vector<Acted> acted;
  {
    const std::unique_lock lock(heads_mutex_);
    for (auto& draft : batch.drafts) {
      auto* head = heads_.find(draft.id);
      const bool had = head != nullptr && head->extras != nullptr;
      if (had || !draft.extras.empty()) {
        acted.push_back({draft.id, draft.machine, had ? std::move(head->extras) : nullptr});
      }
      publish_draft(draft);
    }
    evict();
    if (heads_.slots() > 2 * heads_.size() + 1024) heads_.compact();
  }
  durable_seq_ = store_->info().last;
  for (const auto& item : acted)
    act(item.id, item.machine, item.before.get(), heads_.find(item.id)->extras.get());
  wake_timers();
  wake_readers(batch);
  schedule_maintenance();
}

void EngineCore::publish_draft(Draft& draft) {
  auto* head = heads_.find(draft.id);
  if (head != nullptr &&
      head->created_at != draft.created_at) {  // the next generation is listed behind the others
    remove_head(*head);
    head = nullptr;
  }
  if (head == nullptr) {
    Head made;
    made.id = draft.id;
    made.machine = draft.machine;
    made.key = CompactText(draft.key);
    made.created_at = draft.created_at;
    made.partition = static_cast<std::uint32_t>(partition_number(draft.partition));
    if (made.partition != 0) partition_members_[made.partition].push_back(draft.id);
    head = &heads_.insert(std::move(made));
  } else {
    --counts_[{head->machine, head->state}];
    cached_bytes_ -= head->data.view().size();
  }
  head->state = draft.state;
  head->generation = static_cast<std::uint32_t>(draft.generation);
  head->version = draft.version;
  head->seq = draft.seq;
  head->at = draft.at;
  head->data = CompactText(draft.data);
  head->extras = draft.extras.empty() ? nullptr : std::make_unique<Extras>(std::move(draft.extras));
  if (head->partition != 0) partition_seqs_[head->partition] = draft.seq;
  cached_bytes_ += draft.data.size();
  ++counts_[{head->machine, head->state}];
}

void EngineCore::remove_head(const Head& head) {
  --counts_[{head.machine, head.state}];
  cached_bytes_ -= head.data.view().size();
  if (head.partition != 0) std::erase(partition_members_[head.partition], head.id);
  heads_.erase(InstanceId(head.id));
}

std::size_t EngineCore::partition_number(const std::string& partition) {
  if (partition.empty()) return 0;
  const auto [place, added] =
      partition_numbers_.emplace(partition, static_cast<std::uint32_t>(partitions_.size()));
  if (added) {
    partitions_.push_back(partition);
    partition_seqs_.push_back(0);
    partition_members_.emplace_back();
  }
  return place->second;
}

/// Drops cached data, in turn, until the limit holds; it is durable and can be read again.
void EngineCore::evict() {
  for (std::size_t steps = 0; cached_bytes_ > options_.cache_bytes && steps < 2 * heads_.slots(); ++steps) {
    eviction_hand_ = eviction_hand_ + 1 < heads_.slots() ? eviction_hand_ + 1 : 0;
    auto& head = heads_.slot(eviction_hand_);
    cached_bytes_ -= head.data.view().size();
    head.data = CompactText{};
  }
}

/// The time of the next entry. It grows with every entry, so that it orders them as the log does.
Time EngineCore::log_time() {
  last_at_ = std::max(last_at_ + Duration(1), runtime_.now());
  return last_at_;
}

}  // namespace pawl
