// SPDX-License-Identifier: Apache-2.0
// The lane: takes requests, decides them on drafts and commits the batch; publish.cpp does the rest.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernel/engine/core.hpp"
#include "kernel/engine/error_class.hpp"
#include "pawl/assert.hpp"
#include "pawl/codec.hpp"

namespace pawl {

void EngineCore::enqueue(Request request, bool here) {
  PAWL_ASSERT(!request.targets.empty(), "a request has at least one target");
  // Destroyed outside the lock. Memory that a caller allocated is freed fastest by a caller.
  std::array<Request, 2> spent;
  std::unique_lock lock(queue_mutex_);
  const bool refused = !request.internal && waiting_ >= options_.queue;
  const bool stopped = stopped_;
  if (stopped || refused) {
    lock.unlock();
    if (!request.done) return;
    request.done(stopped ? fail(Code::stopped, "the engine is stopping and takes no new requests")
                         : fail(Code::overloaded, fmt::format("{} requests wait already", options_.queue),
                                {{"limit", std::to_string(options_.queue)}}));
    return;
  }
  queue_.push_back(std::move(request));
  ++waiting_;
  PAWL_ASSERT(waiting_ >= queue_.size(), "what is queued waits", waiting_, queue_.size());
  for (auto& taken : spent) {
    if (spent_.empty()) break;
    taken = std::move(spent_.back());
    spent_.pop_back();
  }
  if (!here || drain_scheduled_) return schedule_drain();
  drain_scheduled_ = true;
  ++inline_callers_;  // `close` waits for them
  lock.unlock();
  Task work = [this] { drain(); };
  const bool done = lane_->run_here(work);
  lock.lock();
  if (!done && !stopped_) lane_->post(std::move(work));
  PAWL_ASSERT(inline_callers_ > 0, "an inline caller leaves once");
  if (--inline_callers_ == 0 && stopped_) inline_callers_gone_.notify_all();
}

/// Wakes the lane for new requests, unless it is awake or lingers for more. Call it with the queue locked:
/// `close` takes that lock before it destroys the lane.
void EngineCore::schedule_drain() {
  PAWL_ASSERT(!stopped_, "a lane that may be gone gets no task");
  const bool complete = lingers_for_ != 0 && queue_.size() + returned_.size() >= lingers_for_;
  if (std::exchange(drain_scheduled_, true) && !complete) return;
  lingers_for_ = 0;
  lane_->post([this] { drain(); });
}

/// Takes all waiting requests at once, which keeps contention on the queue low, and runs them in batches.
void EngineCore::drain() {
  PAWL_ASSERT(taken_.empty() ? taken_position_ == 0 : taken_position_ < taken_.size(),
              "requests are taken once the ones before are decided", taken_position_, taken_.size());
  if (taken_.empty()) {
    if (linger_for_batch()) return;
    take_returned();
    const std::lock_guard lock(queue_mutex_);
    taken_.swap(queue_);
  }
  const auto decided = run_taken();
  bool more = taken_position_ < taken_.size();
  {
    const std::lock_guard lock(queue_mutex_);
    PAWL_ASSERT(waiting_ >= decided, "a decided request was waiting", waiting_, decided);
    waiting_ -= decided;
    if (!more && spent_.empty()) spent_.swap(taken_);
    more = more || !queue_.empty() || !returned_.empty();
    drain_scheduled_ = more;
  }
  if (taken_position_ >= taken_.size()) {
    taken_.clear();
    taken_position_ = 0;
  }
  if (more) lane_->post([this] { drain(); });
}

/// Adds the requests that arrived while the batch was being decided: one sync then pays for them, too. False:
/// there are none, or no room. Decided requests keep their addresses.
bool EngineCore::take_arrivals(std::size_t most) {
  if (taken_position_ < taken_.size()) return false;
  take_returned();
  const std::lock_guard lock(queue_mutex_);
  const auto count = std::min({queue_.size(), taken_.capacity() - taken_.size(), most});
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
  const auto* const place = taken_.data();
  std::move(queue_.begin(), end, std::back_inserter(taken_));
  PAWL_ASSERT(taken_.data() == place, "a request keeps its address until it is answered");
  queue_.erase(queue_.begin(), end);
  return count != 0;
}

/// Callers that were answered together usually send their next requests together, and handlers that started
/// together return together. If only a few of them are back, waits for the others, at most half as long as a
/// commit takes: one sync for many requests is cheaper than several for few. True: it waits, and `drain` is
/// called again.
bool EngineCore::linger_for_batch() {
  constexpr std::size_t kFewest = 4;
  constexpr Duration kMost = std::chrono::milliseconds(1);
  // At most once per batch.
  if (std::exchange(last_batch_, 0) < kFewest) return false;
  PAWL_ASSERT(usual_batch_ >= kFewest, "the usual batch is at least as large as the last one", usual_batch_);
  const auto most = std::min(commit_time_.load(std::memory_order_relaxed) / 2, kMost);
  if (most <= Duration::zero()) return false;
  const std::lock_guard lock(queue_mutex_);
  if (4 * (queue_.size() + returned_.size()) >= 3 * usual_batch_ || stopped_) return false;
  lingers_for_ = usual_batch_;
  lane_->after(most, [this, wait = ++lingers_] {
    {
      const std::lock_guard again(queue_mutex_);
      if (lingers_ != wait || std::exchange(lingers_for_, 0) == 0) return;  // enough requests have arrived
    }
    drain();
  });
  return true;
}

void EngineCore::Batch::reset(std::size_t requests) {
  drafts.clear();
  drafts.reserve(requests);
  index.reset(requests);
  partitions.clear();
  answers.clear();
  answers.reserve(requests);
  reserved.clear();
  ephemerals.clear();
  entries = 0;
  dirty = false;
  lost = false;
  setback.reset();
}

/// Runs one batch of the taken requests, as many as fit. Returns their number.
std::size_t EngineCore::run_taken() {
  const auto first = taken_position_;
  const auto room = [&] { return options_.batch - (taken_position_ - first); };
  begin_batch(std::min(taken_.size() - first, room()));
  do {
    const auto requests = std::span(taken_).subspan(taken_position_);
    const auto fitting = requests.first(std::min(requests.size(), room()));
    taken_position_ += fitting.size();
    decide_batch(batch_, fitting);
  } while (take_arrivals(room()));
  PAWL_ASSERT(taken_position_ - first <= options_.batch, "a batch keeps to its limit",
              taken_position_ - first, options_.batch);
  finish_batch(batch_);
  return taken_position_ - first;
}

/// There is one batch at a time, even if a caller does the lane's work.
void EngineCore::begin_batch(std::size_t requests) {
  const bool other = deciding_.exchange(true, std::memory_order_relaxed);
  PAWL_ASSERT(!other, "one batch is decided at a time");
  batch_.reset(requests);
}

void EngineCore::run_batch(std::span<Request> requests) {
  begin_batch(requests.size());
  decide_batch(batch_, requests);
  finish_batch(batch_);
}

void EngineCore::decide_batch(Batch& batch, std::span<Request> requests) {
  // Refusals rely on what is in memory, which is valid only for the owner.
  const auto owner = store_->still_owner();
  for (std::size_t position = 0; position < requests.size(); ++position) {
    auto& request = requests[position];
    PAWL_ASSERT(batch.answers.empty() || batch.answers.back().request < &request,
                "a request is answered once");
    prefetch(requests, position);
    if (!retired_.empty()) retired_.pop_back();
    Result<Decided> outcome;
    if (poisoned_) {
      outcome = fail(*poisoned_);
    } else if (!owner) {
      outcome = fail(owner.error());
    } else if (batch.setback) {
      // The store may take seconds to fail for each request.
      outcome = fail(*batch.setback);
    } else {
      outcome = decide_or_refuse(batch, request);
    }
    if (store_->wants_help()) schedule_help();
    const auto code = outcome ? std::nullopt : std::optional(outcome.error().code());
    const bool transient = code && !poisoned_ && classify(*code) == ErrorClass::transient;
    if (batch.lost) {
      const auto error = outcome.error();
      batch.answers.push_back({&request, std::move(outcome)});
      fail_batch(batch, error);
      batch.reset(requests.size());
      if (!poisoned_) batch.setback = error;
    } else if (transient && request.internal) {
      // The instance could not be read, or the lease has run out but may still be renewed. The engine's own
      // requests are kept for later.
      postpone(std::move(request));
    } else {
      if (code) ++(code == Code::version_conflict ? conflicts_ : refused_);
      batch.answers.push_back({&request, std::move(outcome)});
    }
  }
}

/// Commits the batch and answers its requests.
void EngineCore::finish_batch(Batch& batch) {
  // Ephemeral values wait if the store accepts no writes at present.
  const auto flushed = batch.setback ? Result<void>() : flush_ephemerals(batch);
  if (batch.dirty || !flushed) {
    if (const auto committed = flushed ? commit_batch(batch) : flushed; !committed) {
      fail_batch(batch, committed.error());
      deciding_.store(false, std::memory_order_relaxed);
      return;
    }
    publish(batch);
  }
  runtime_.fault("engine.answer");
  last_batch_ = batch.answers.size();
  usual_batch_ = std::max(last_batch_, usual_batch_ - usual_batch_ / 8);
  for (auto& answer : batch.answers) {
    if (auto done = std::exchange(answer.request->done, nullptr)) {
      done(outcome_of(batch, std::move(answer.decided)));
    }
  }
  batch.reset(0);
  deciding_.store(false, std::memory_order_relaxed);
}

/// In a large batch the store writes the decided part while the lane decides the rest.
void EngineCore::schedule_help() {
  PAWL_ASSERT(helper_ != nullptr, "only an open engine has a helper thread");
  if (help_scheduled_.exchange(true)) return;
  helper_->post([this] {
    store_->help();
    help_scheduled_ = false;
  });
}

/// Prefetches the memory that the next requests need. The nearer a request, the more of the path to its data
/// is known.
void EngineCore::prefetch(std::span<const Request> requests, std::size_t position) const {
  PAWL_ASSERT(position < requests.size(), "the request belongs to the batch", position);
  const auto target = [&](std::size_t ahead) -> const Target* {
    if (position + ahead >= requests.size() || requests[position + ahead].targets.empty()) return nullptr;
    return &requests[position + ahead].targets.front();
  };
  if (const auto* there = target(10)) __builtin_prefetch(there);
  if (const auto* there = target(8)) {
    heads_.fetch_index(there->id);
    if (const auto* send = std::get_if<SendEvent>(&there->command)) {
      __builtin_prefetch(send->payload.data());
      __builtin_prefetch(send->payload.data() + 64);
      __builtin_prefetch(send->typed.get());
    }
  }
  if (const auto* there = target(6)) heads_.fetch_head(there->id);
  if (const auto* there = target(4)) {
    if (const auto* head = heads_.find(there->id)) head->data.fetch();
  }
  if (const auto* there = target(2)) {
    if (const auto* head = heads_.find(there->id)) __builtin_prefetch(head->data.value());
  }
}

/// The instances after the transaction.
Result<std::vector<Instance>> EngineCore::outcome_of(const Batch& batch, Result<Decided> decided) const {
  if (!decided) return fail(std::move(decided).error());
  auto& [instances, first, count] = *decided;
  PAWL_ASSERT(first + count <= batch.drafts.size() && (count == 0 || instances.empty()),
              "an outcome belongs to this batch or to an earlier one", first, count, batch.drafts.size());
  instances.reserve(instances.size() + count);
  for (std::size_t i = 0; i < count; ++i) instances.push_back(to_instance(batch.drafts[first + i]));
  return std::move(instances);
}

Result<void> EngineCore::commit_batch(Batch& batch) {
  PAWL_ASSERT(!batch.lost && !poisoned_, "a lost batch is never committed");
  PAWL_ASSERT(batch.entries == batch.drafts.size(), "every committed entry is published", batch.entries,
              batch.drafts.size());
  runtime_.fault("engine.commit");
  const auto start = runtime_.instant();
  PAWL_CHECK(store_->commit());
  runtime_.fault("engine.committed");
  const auto taken = runtime_.instant() - start;
  commit_time_.store(taken, std::memory_order_relaxed);
  commit_seconds_.count(std::chrono::duration<double>(taken).count());
  batch_sizes_.count(static_cast<double>(batch.entries));
  transitions_ += batch.entries;
  ++commits_;
  pause_ = kPause;
  return {};
}

/// Nothing of the batch becomes visible: its requests get the error. If the store goes on, the engine's own
/// requests wait until the disk has room or the database is back.
void EngineCore::fail_batch(Batch& batch, const Error& error) {
  const bool goes_on = error.code() == Code::disk_full || error.code() == Code::rolled_back;
  const bool fenced = error.code() == Code::store_fenced;
  PAWL_ASSERT(!poisoned_, "a poisoned engine runs no batch that could fail");
  if (!goes_on) {
    poisoned_ =
        fenced ? error
               : Error(Code::store_poisoned, "the store failed and must be reopened: " + error.to_string());
    options_.log.error("store poisoned", {{"error", error.to_string()}});
    end_serving(*poisoned_);
  }
  forget_permits(batch.reserved);
  // A store that was poisoned before the batch has written nothing of it.
  const bool known = goes_on || fenced || (error.code() == Code::store_poisoned && !batch.dirty);
  const auto told =
      known ? error
            : Error(Code::outcome_unknown,
                    "the store failed while committing; open it again to see: " + error.to_string());
  for (auto& answer : batch.answers) {
    if (answer.request->internal && goes_on) {
      postpone(std::move(*answer.request));
    } else if (answer.request->done) {
      answer.request->done(fail(told));
    }
  }
  if (goes_on) restore_ephemerals(std::move(batch.ephemerals));
}

/// Retries postponed requests together and in their order, so that work which ended before a deadline is
/// still recorded before it. The pauses grow until a commit succeeds.
void EngineCore::postpone(Request request) {
  constexpr Duration kMost = std::chrono::seconds(30);
  PAWL_ASSERT(request.internal, "only the engine's own requests are retried");
  postponed_.push_back(std::move(request));
  watch_ownership();  // callers may depend on it, and must be told of a takeover
  if (postponed_.size() > 1) return;
  lane_->after(pause_, [this] {
    for (auto& again : std::exchange(postponed_, {})) enqueue(std::move(again));
  });
  pause_ = std::min(2 * pause_, kMost);
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

/// The target's instance as the open batch left it, or else its durable state.
Result<Draft> EngineCore::draft_of(const Batch& batch, const Target& target) {
  if (const auto found = batch.index.find(batch.drafts, target.id)) {
    const auto& open = batch.drafts[*found];
    PAWL_ASSERT(open.newest && open.seq > 0, "a decision is based on the newest draft", open.seq);
    return Draft{.id = open.id,
                 .exists = open.exists,
                 .machine = open.machine,
                 .state = open.state,
                 .generation = open.generation,
                 .version = open.version,
                 .seq = open.seq,
                 .created_at = open.created_at,
                 .at = open.at,
                 .key = open.key,
                 .partition = open.partition,
                 .data = open.data,
                 .extras = open.extras};
  }
  const auto* head = heads_.find(target.id);
  if (head == nullptr) return Draft{.id = target.id, .machine = target.machine, .key = target.key};
  PAWL_ASSERT(head->live && head->version > 0 && head->seq > 0, "a head has an entry", head->version,
              head->seq);
  // The only place where two keys with the same id could meet: the second one is refused at creation.
  if (std::holds_alternative<CreateInstance>(target.command) && head->key.view() != target.key) {
    return fail(Code::duplicate_instance,
                fmt::format("the keys \"{}\" and \"{}\" have the same id", target.key, head->key.view()));
  }
  Draft draft{.id = head->id,
              .exists = true,
              .machine = head->machine,
              .state = head->state,
              .generation = head->generation,
              .version = head->version,
              .seq = head->seq,
              .created_at = head->created_at,
              .at = head->at,
              .key = target.key.empty() ? head->key.view() : std::string_view(target.key),
              .partition = partitions_[head->partition],
              .data = head->data};
  if (head->extras) draft.extras = *head->extras;
  if (!head->data) {
    PAWL_TRY(const auto data, load_data(head->id, head->machine, head->seq));
    draft.data = HeadData(data, nullptr);
  }
  return draft;
}

Result<void> EngineCore::check_partition() const {
  PAWL_ASSERT(!staged_.drafts.empty() && staged_.drafts.size() == staged_.changes.size(),
              "each draft has a decision", staged_.drafts.size(), staged_.changes.size());
  for (const auto& draft : staged_.drafts) {
    const auto& first = staged_.drafts.front();
    if (draft.partition == first.partition && (!draft.partition.empty() || draft.id == first.id)) continue;
    return fail(Code::wrong_partition,
                fmt::format("a transaction stays within one partition: \"{}\" is in {}, \"{}\" in {}",
                            first.key, first.partition.empty() ? "its own" : first.partition, draft.key,
                            draft.partition.empty() ? "its own" : draft.partition));
  }
  return {};
}

/// Decides one transaction. If the store refuses an event of the engine itself, for example by a constraint
/// of the application's tables, it is recorded as refused, like one that the machine refuses.
Result<Decided> EngineCore::decide_or_refuse(Batch& batch, Request& request) {
  auto outcome = decide_request(batch, request);
  if (outcome || !request.internal || request.targets.size() != 1) return outcome;
  if (classify(outcome.error().code()) != ErrorClass::refusal ||
      !refuse(request.targets.front().command, outcome.error()))
    return outcome;
  return decide_request(batch, request);
}

/// Decides every operation of a transaction, each on its own draft.
Result<void> EngineCore::decide_targets(const Batch& batch, const Request& request) {
  staged_.drafts.clear();
  staged_.changes.clear();
  for (const auto& target : request.targets) {
    if (std::ranges::find(staged_.drafts, target.id, &Draft::id) != staged_.drafts.end()) {
      return fail(Code::invalid_argument, fmt::format("a transaction names \"{}\" twice", target.key));
    }
    PAWL_TRY(auto draft, draft_of(batch, target));
    PAWL_TRY(auto change, decide(registry_, draft, target.command, log_time()));
    PAWL_ASSERT(!change || draft.at >= last_at_, "the time of entries never decreases");
    if (change) last_at_ = draft.at;
    staged_.drafts.push_back(std::move(draft));
    staged_.changes.push_back(std::move(change));
  }
  return check_partition();
}

/// Decides one transaction and adds it to the open batch. An error leaves the batch unchanged, or sets
/// `lost`.
Result<Decided> EngineCore::decide_request(Batch& batch, Request& request) {
  PAWL_TRY(auto earlier, repeated(request));
  if (earlier) return Decided{.earlier = *std::move(earlier)};
  if (request.guard) {
    const auto open = batch.partitions.find(request.guard->partition);
    const auto seq = open != batch.partitions.end() ? open->second : partition_seq(request.guard->partition);
    if (seq != request.guard->seq) {
      return fail(Code::version_conflict,
                  fmt::format("partition \"{}\" changed since it was read", request.guard->partition),
                  {{"partition", request.guard->partition}});
    }
  }
  PAWL_CHECK(decide_targets(batch, request));
  auto& [staged, changes, entries, extras] = staged_;
  if (std::ranges::none_of(changes, [](const auto& change) { return change.has_value(); })) return Decided{};

  const auto reserved_before = batch.reserved.size();
  for (std::size_t i = 0; i < staged.size(); ++i) {
    if (changes[i]) reserve_permits(batch, staged[i], *changes[i]);
  }
  // Encoding errors are refused before the store sees the transaction.
  auto encoded = encode_extras();
  auto first = encoded ? write(request) : Result<Seq>(fail(std::move(encoded).error()));
  if (!first) {
    forget_permits(std::span(batch.reserved).subspan(reserved_before));
    batch.reserved.resize(reserved_before);
    batch.lost = classify(first.error().code()) != ErrorClass::refusal;
    return fail(std::move(first).error());
  }

  Decided decided{.first = batch.drafts.size()};
  auto seq = *first;
  PAWL_ASSERT(
      seq > (batch.drafts.empty() ? durable_seq_.load(std::memory_order_relaxed) : batch.drafts.back().seq),
      "entry numbers grow", seq);
  for (std::size_t i = 0; i < staged.size(); ++i) {
    if (!changes[i]) continue;
    PAWL_ASSERT(seq > staged[i].seq, "an entry follows the instance's previous entry", seq, staged[i].seq);
    staged[i].seq = seq++;
    if (!staged[i].partition.empty()) batch.partitions[std::string(staged[i].partition)] = staged[i].seq;
    if (const auto place = batch.index.find(batch.drafts, staged[i].id)) batch.drafts[*place].newest = false;
    batch.drafts.push_back(std::move(staged[i]));
    batch.index.add(batch.drafts, batch.drafts.size() - 1);
    ++decided.count;
    ++batch.entries;
  }
  batch.dirty = true;
  return decided;
}

Result<void> EngineCore::encode_extras() {
  auto& [staged, changes, entries, extras] = staged_;
  extras.clear();
  extras.resize(staged.size());
  for (std::size_t i = 0; i < staged.size(); ++i) {
    if (!changes[i] || staged[i].extras.empty()) continue;
    auto text = encode(staged[i].extras);
    if (!text) return fail(Code::invalid_argument, text.error().message());
    extras[i] = *std::move(text);
  }
  return {};
}

Result<Seq> EngineCore::write(const Request& request) {
  auto& [staged, changes, entries, extras] = staged_;
  entries.clear();
  std::vector<Sql> sql = request.sql;
  for (std::size_t i = 0; i < staged.size(); ++i) {
    if (!changes[i]) continue;
    const auto& draft = staged[i];
    const auto& change = *changes[i];
    const bool begins = change.kind == EntryKind::created;
    PAWL_ASSERT(begins || draft.seq > 0, "an existing instance has a previous entry", draft.version);
    entries.push_back({.id = draft.id,
                       .kind = change.kind,
                       .machine = registry_.machine_name(draft.machine),
                       .key = begins ? draft.key : std::string_view{},
                       .partition = begins ? draft.partition : std::string_view{},
                       .version = draft.version,
                       .generation = draft.generation,
                       .prev = draft.seq,
                       .state = registry_.state_name(draft.machine, draft.state),
                       .schema = registry_.definition(draft.machine).schema,
                       .at = draft.at,
                       .event = change.event,
                       .payload = change.payload,
                       .data = draft.data.text(),
                       .extra = extras[i],
                       .finished = registry_.finished(draft.machine, draft.state)});
    sql.insert(sql.end(), change.sql.begin(), change.sql.end());
  }
  return store_->apply({.entries = entries, .sql = sql, .request = request.tag});
}

/// The time of the next entry. It grows with every entry, so it orders them as the log does.
Time EngineCore::log_time() {
  const auto before = last_at_;
  last_at_ = std::max(last_at_ + Duration(1), runtime_.now());
  PAWL_ASSERT(last_at_ > before, "log time grows");
  return last_at_;
}

}  // namespace pawl
