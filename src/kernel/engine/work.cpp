// SPDX-License-Identifier: Apache-2.0
// Work: permits, running handlers, recording results. Runs on the lane, except for the handlers. A piece of
// work holds or waits for a permit of its pool from its request until it is consumed or given up; the work of
// an instance in a queue waits until the instance is admitted.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "kernel/engine/core.hpp"
#include "kernel/engine/error_class.hpp"
#include "pawl/assert.hpp"
#include "pawl/sim.hpp"

namespace pawl {
namespace {

constexpr std::int64_t kQueue =
    0;  // instead of the number of a piece of work: the instance's place in a queue

const WorkRecord* find_work(const Head* head, std::int64_t number) {
  if (head == nullptr || !head->extras) return nullptr;
  const auto found = std::ranges::find(head->extras->work, number, &WorkRecord::number);
  return found == head->extras->work.end() ? nullptr : &*found;
}

}  // namespace

/// The bytes of both: compact, because a hundred thousand may wait in a queue.
EngineCore::HolderName::HolderName(const WorkKey& key) {
  std::memcpy(bytes_.data(), key.first.bytes.data(), sizeof key.first.bytes);
  std::memcpy(bytes_.data() + sizeof key.first.bytes, &key.second, sizeof key.second);
}

EngineCore::WorkKey EngineCore::key_of(const std::string& holder) {
  WorkKey key;
  PAWL_ASSERT(holder.size() == sizeof key.first.bytes + sizeof key.second,
              "a permit holder is a piece of work", holder.size());
  std::memcpy(key.first.bytes.data(), holder.data(), sizeof key.first.bytes);
  std::memcpy(&key.second, holder.data() + sizeof key.first.bytes, sizeof key.second);
  return key;
}

const Machines::Work* EngineCore::handler_of(std::uint16_t machine, std::string_view work) const {
  const auto& works = registry_.entry(machine).works;
  const auto found = works.find(work);
  return found == works.end() ? nullptr : &found->second;
}

/// A first attempt that may be retried is recorded as started long before a thread is free, so that many
/// share one commit. A last attempt, or one after a failure or a crash, is recorded only when a thread is
/// about to be free: a crash uses up the attempts of the work that really ran, and of little else.
PermitPool& EngineCore::pool_of(std::uint16_t machine, const WorkRecord& work) {
  const auto* handler = handler_of(machine, work.name);
  if (handler != nullptr && !handler->options.pool.empty()) {
    if (const auto pool = pools_.find(handler->options.pool); pool != pools_.end()) return pool->second;
  }
  const bool repeatable = handler != nullptr && handler->options.retry.retries > 0;
  const auto own = pools_.find(repeatable && work.attempt == 0 ? kStartedAttempts : kWorkThreads);
  PAWL_ASSERT(own != pools_.end(), "there is a pool for work without a pool of its own", work.name);
  return own->second;
}

/// Starts, retries or stops a piece of work whose record has changed from `older`; null if it is new.
void EngineCore::act_on_work(const InstanceId& id, std::uint16_t machine, const WorkRecord* older,
                             const WorkRecord& work) {
  const WorkKey key{id, work.number};
  PAWL_ASSERT(older == nullptr || (older->number == work.number && older->attempt <= work.attempt),
              "the attempts at a piece of work only grow", work.number, work.attempt);
  if (work.attempt > (older != nullptr ? older->attempt : 0)) {
    start_work(id, machine, work);
  } else if (work.not_before && (older == nullptr || !older->not_before)) {
    retry_later(id, machine, work);
  } else if (older == nullptr && is_leased(machine, work.name) &&
             may_work(id, heads_.find(id)->extras->queue)) {
    offer(key, machine, work.name);
  }
  if (work.stop && (older == nullptr || older->stop != work.stop)) stop_work(key, machine, work);
}

/// Whether the instance is in no queue, or is admitted.
bool EngineCore::may_work(const InstanceId& id, const std::optional<QueueRecord>& queue) const {
  if (!queue) return true;
  const std::lock_guard lock(pools_mutex_);
  const auto pool = pools_.find(queue->pool);
  return pool == pools_.end() || pool->second.held(HolderName({id, kQueue}).view()) != 0;
}

/// Takes a permit for new work if one is free; then the first attempt is recorded in the same entry.
void EngineCore::reserve_permits(Batch& batch, Draft& draft, const Change& change) {
  if (change.enters_queue) {
    const auto& queue = *draft.extras.queue;
    const WorkKey key{draft.id, kQueue};
    const std::lock_guard lock(pools_mutex_);
    const auto found = pools_.find(queue.pool);
    PAWL_ASSERT(found != pools_.end(), "a queue belongs to a pool", queue.pool);
    auto& pool = found->second;
    // Refused if it left and entered the queue again in this batch: it keeps its place.
    if (pool.held(HolderName(key).view()) == 0 && pool.request(HolderName(key).view(), 1, 1, queue.priority))
      batch.reserved.push_back(key);
  }
  if (change.new_work.empty() || !may_work(draft.id, draft.extras.queue)) return;
  for (const auto number : change.new_work) {
    const auto found = std::ranges::find(draft.extras.work, number, &WorkRecord::number);
    PAWL_ASSERT(found != draft.extras.work.end() && found->attempt == 0,
                "new work is recorded and has not started", number);
    auto& work = *found;
    if (is_leased(draft.machine, work.name)) continue;
    const WorkKey key{draft.id, number};
    const std::lock_guard lock(pools_mutex_);
    const auto granted = pool_of(draft.machine, work).request(HolderName(key).view(), 1, 1);
    PAWL_ASSERT(granted.has_value(), "new work is unknown to its pool");
    work.attempt = granted->empty() ? 0 : 1;
    batch.reserved.push_back(key);
  }
}

// Running.

void EngineCore::start_work(const InstanceId& id, std::uint16_t machine, const WorkRecord& work) {
  const WorkKey key{id, work.number};
  const auto* handler = handler_of(machine, work.name);
  PAWL_ASSERT(handler != nullptr, "only work with a handler starts", work.name);
  PAWL_ASSERT(work.attempt > 0 && !running_.contains(key), "a piece of work runs once at a time", work.number,
              work.attempt);
  if (handler->options.lease && !claiming_.contains(key)) {
    // The claim has ended in the meantime: the attempt goes to the next one.
    unclaimed_.insert(key);
    return offer(key, machine, work.name);
  }
  const auto& head = *heads_.find(id);
  auto data = head.data;
  if (!data) {
    auto loaded = load_data(id, machine, head.seq);
    if (!loaded && classify(loaded.error().code()) == ErrorClass::transient)
      return start_later(key, machine, work.attempt);
    if (!loaded) return work_returned(key, machine, work.attempt, fail(std::move(loaded).error()));
    data = HeadData(*loaded, nullptr);
  }
  RunningWork running{.attempt = work.attempt};
  if (handler->options.lease) {
    hand_out(key, machine, work, data);
    running.lease = lane_->after(*handler->options.lease,
                                 [this, key, attempt = work.attempt] { lease_ended(key, attempt); });
    if (const auto timeout = handler->options.timeout) {
      running.timeout =
          lane_->after(*timeout, [this, key, attempt = work.attempt] { work_timed_out(key, attempt); });
    }
  } else {
    auto job = [this, key, machine, work, run = &handler->run, data, timeout = handler->options.timeout,
                instance = std::string(head.key.view())](std::stop_token stop) {
      // The timeout starts now, not when the attempt started to wait for a thread.
      if (timeout) {
        post([this, key, attempt = work.attempt, timeout = *timeout] { limit_time(key, attempt, timeout); });
      }
      const WorkContext context{.machine = registry_.machine_name(machine),
                                .origin = registry_.origin(machine),
                                .key = instance,
                                .work = work.name,
                                .number = work.number,
                                .attempt = work.attempt,
                                .data = data.text(),
                                .value = data.value(),
                                .stop = std::move(stop)};
      hand_back({key, machine, work.attempt, run_handler(*run, context, work.payload)});
    };
    auto submitted = workers_->submit(std::move(job));
    if (!submitted) return work_returned(key, machine, work.attempt, fail(submitted.error()));
    running.stop = *std::move(submitted);
  }
  running_.emplace(key, std::move(running));
  running_count_ = running_.size();
  watch_ownership();
}

/// The attempt is recorded, but the instance cannot be read at present.
void EngineCore::start_later(const WorkKey& key, std::uint16_t machine, std::uint32_t attempt) {
  PAWL_ASSERT(attempt > 0, "only a recorded attempt is started later", key.second);
  watch_ownership();
  lane_->after(kPause, [this, key, machine, attempt] {
    // Another owner may have started it.
    if (poisoned_) return;
    const auto* work = find_work(heads_.find(key.first), key.second);
    if (work == nullptr || work->attempt != attempt || work->not_before || running_.contains(key)) return;
    if (!store_->still_owner()) return start_later(key, machine, attempt);
    if (work->stop) return stop_work(key, machine, *work);
    start_work(key.first, machine, *work);
  });
}

/// Runs a handler; turns an exception into an error.
Result<Reply> EngineCore::run_handler(const WorkHandler& run, const WorkContext& context,
                                      std::string_view payload) {
  try {
    return run(context, payload);
  } catch (const sim::Crashed&) {
    throw;
  } catch (const std::exception& thrown) {
    return fail(Code::work_threw,
                fmt::format("the handler of work \"{}\" threw: {}", context.work, thrown.what()));
  } catch (...) {
    return fail(Code::work_threw, fmt::format("the handler of work \"{}\" threw", context.work));
  }
}

void EngineCore::limit_time(const WorkKey& key, std::uint32_t attempt, Duration timeout) {
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.attempt != attempt) return;
  PAWL_ASSERT(!found->second.timeout, "an attempt has one timeout", key.second, attempt);
  found->second.timeout = lane_->after(timeout, [this, key, attempt] { work_timed_out(key, attempt); });
}

/// Asks the attempt to stop. If it does not, it counts as failed a little later.
void EngineCore::work_timed_out(WorkKey key, std::uint32_t attempt) {
  constexpr Duration kGrace = std::chrono::seconds(5);
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.attempt != attempt) return;
  if (found->second.lease) {
    return work_returned(key, heads_.find(key.first)->machine, attempt,
                         fail(Code::timed_out, fmt::format("attempt {} took too long", attempt)));
  }
  PAWL_ASSERT(!found->second.timed_out, "an attempt times out once", key.second, attempt);
  found->second.timed_out = true;
  found->second.stop.request_stop();
  found->second.timeout = lane_->after(kGrace, [this, key, attempt] { work_overdue(key, attempt); });
}

/// The handler ignores the stop request. The attempt counts as failed now, but the next one waits until it
/// returns: two never run at once. An additional thread replaces its thread, unless too many hang.
void EngineCore::work_overdue(WorkKey key, std::uint32_t attempt) {
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.attempt != attempt) return;
  PAWL_ASSERT(found->second.timed_out && !found->second.abandoned,
              "an attempt is abandoned once, after it was asked to stop", key.second, attempt);
  found->second.timeout.reset();
  found->second.abandoned = true;
  const auto* head = heads_.find(key.first);
  const auto* work = find_work(head, key.second);
  if (replaced_ < options_.work_threads) {
    found->second.replaced = true;
    replace_threads(1);
    const auto* handler = work != nullptr ? handler_of(head->machine, work->name) : nullptr;
    const bool all = handler != nullptr && handler->options.overdue_frees_permit;
    forget_permits(std::span(&key, 1), all ? Pools::all : Pools::own);
  }
  if (work == nullptr || work->attempt != attempt) return;
  attempt_failed(key, head->machine, *work,
                 Error(Code::timed_out, fmt::format("attempt {} of work \"{}\" took too long and does not "
                                                    "stop",
                                                    attempt, work->name)),
                 {});
}

void EngineCore::replace_threads(std::ptrdiff_t more) {
  PAWL_ASSERT(more >= 0 || replaced_ >= static_cast<std::size_t>(-more),
              "only additional threads are removed", replaced_);
  replaced_ += static_cast<std::size_t>(more);
  workers_->resize(std::max<std::size_t>(options_.work_threads, 1) + replaced_);
}

/// Queues a handler's result for the lane, which takes the results of several handlers at once.
void EngineCore::hand_back(Returned returned) {
  PAWL_ASSERT(returned.attempt > 0, "only a started attempt returns", returned.key.second);
  const std::lock_guard lock(queue_mutex_);
  if (stopped_) return;
  returned_.push_back(std::move(returned));
  schedule_drain();
}

void EngineCore::take_returned() {
  PAWL_ASSERT(taken_back_.empty(), "results are taken once", taken_back_.size());
  {
    const std::lock_guard lock(queue_mutex_);
    taken_back_.swap(returned_);
  }
  for (auto& [key, machine, attempt, result] : taken_back_) {
    work_returned(key, machine, attempt, std::move(result));
  }
  taken_back_.clear();
}

/// A handler has returned: commits its result and passes its permit on.
void EngineCore::work_returned(WorkKey key, std::uint16_t machine, std::uint32_t attempt,
                               Result<Reply> result, Done done) {
  bool timed_out = false;
  bool abandoned = false;
  bool again = false;
  if (const auto found = running_.find(key); found != running_.end() && found->second.attempt == attempt) {
    timed_out = found->second.timed_out;
    abandoned = found->second.abandoned;
    again = found->second.again;
    if (found->second.replaced) replace_threads(-1);
    if (found->second.timeout) lane_->cancel(*found->second.timeout);
    if (found->second.lease) lane_->cancel(*found->second.lease);
    running_.erase(found);
    running_count_ = running_.size();
  }
  forget_permits(std::span(&key, 1));
  claim_failed(key);
  const auto* work = find_work(heads_.find(key.first), key.second);
  PAWL_ASSERT(work == nullptr || work->attempt >= attempt, "a returning attempt is recorded", key.second,
              attempt);
  if (work == nullptr || abandoned) {
    // Cancelled or abandoned in the meantime: the result is dropped.
    if (work != nullptr && again) request_permit(key, machine, work->name);
    if (done) done(fail(Code::lease_lost, "the work was cancelled or given up in the meantime"));
    return;
  }
  if (result && result->error) result = fail(*result->error);
  FailureEvents events;
  if (result && result->failed) {
    auto failed = *std::move(result->failed);
    events = {std::move(result->event), std::move(failed.last)};
    result = fail(std::move(failed.error));
  }
  if (result) {
    if (!done) done = settled_callback(machine, work->name);
    const bool may_be_refused = !result->sql.empty();
    enqueue(
        {.targets = {{machine, key.first, {}, FinishWork{key.second, attempt, std::move(result->event)}}},
         .sql = std::move(result->sql),
         .done = may_be_refused ? fail_if_refused(key, machine, attempt, std::move(done)) : std::move(done),
         .internal = true});
    return;
  }
  auto error = std::move(result).error();
  if (timed_out)
    error = Error(Code::timed_out, fmt::format("attempt {} of work \"{}\" took too long: {}", attempt,
                                               work->name, error.message()));
  attempt_failed(key, machine, *work, std::move(error), std::move(done), std::move(events));
}

/// A callback for `WorkOptions::settled`; empty if there is none.
Done EngineCore::settled_callback(std::uint16_t machine, std::string_view name) const {
  const auto* handler = handler_of(machine, name);
  if (handler == nullptr || !handler->options.settled) return {};
  return [settled = &handler->options.settled](const Result<std::vector<Instance>>& outcome) {
    if (outcome && !outcome->empty()) (*settled)(outcome->front());
  };
}

/// If the store refuses the handler's statements, the attempt has failed.
Done EngineCore::fail_if_refused(WorkKey key, std::uint16_t machine, std::uint32_t attempt, Done done) {
  return
      [this, key, machine, attempt, done = std::move(done)](Result<std::vector<Instance>> outcome) mutable {
        const bool refused = !outcome && classify(outcome.error().code()) == ErrorClass::refusal;
        const auto* work = refused ? find_work(heads_.find(key.first), key.second) : nullptr;
        if (work != nullptr && work->attempt == attempt) {
          attempt_failed(key, machine, *work, outcome.error(), std::move(done));
        } else if (done) {
          done(std::move(outcome));
        }
      };
}

/// Records the failure: schedules the next attempt or ends the work.
void EngineCore::attempt_failed(const WorkKey& key, std::uint16_t machine, const WorkRecord& work,
                                Error error, Done done, FailureEvents events) {
  PAWL_ASSERT(work.number == key.second, "the failed attempt belongs to this work", work.number);
  const auto* handler = handler_of(machine, work.name);
  if (work.stop && error.code() != Code::cancelled)
    error = Error(Code::cancelled, fmt::format("stopped while it failed: {}", error.to_string()));
  FailWork failed{key.second, work.attempt, std::move(error), std::nullopt, std::nullopt};
  const auto delay = handler == nullptr || work.stop
                         ? std::nullopt
                         : delay_after(handler->options.retry, work.attempt, runtime_.random());
  if (delay) {
    failed.delay = *delay;
    failed.event = std::move(events.again);
  } else if (events.last) {
    failed.event = events.last(failed.error).event;
  } else if (handler != nullptr && handler->options.failed) {
    failed.event = handler->options.failed(failed.error).event;
  }
  if (!done && !delay) done = settled_callback(machine, work.name);
  enqueue(
      {.targets = {{machine, key.first, {}, std::move(failed)}}, .done = std::move(done), .internal = true});
}

/// Ends work that is to stop: asks a running attempt to stop unless it may finish; without one it ends now.
void EngineCore::stop_work(const WorkKey& key, std::uint16_t machine, const WorkRecord& work) {
  PAWL_ASSERT(work.stop && work.number == key.second, "only work with a stop request is stopped",
              work.number);
  const auto running = running_.find(key);
  if (running != running_.end() && !running->second.abandoned) {
    if (work.stop == WorkStop::now) running->second.stop.request_stop();
    return;
  }
  Error stopped(Code::cancelled, "stopped before another attempt began");
  if (running != running_.end()) return attempt_failed(key, machine, work, std::move(stopped), {});
  withdraw_offer(key);
  work_returned(key, machine, work.attempt, fail(std::move(stopped)));
}

/// The work was cancelled. A running attempt is asked to stop; its permit is free once it has returned.
void EngineCore::work_cancelled(const WorkKey& key) {
  withdraw_offer(key);
  claim_failed(key);
  if (const auto running = running_.find(key); running != running_.end()) {
    running->second.stop.request_stop();
    // A leased attempt does not return: its holder learns of the end at the next heartbeat.
    if (!running->second.lease) return;
    lane_->cancel(*running->second.lease);
    if (running->second.timeout) lane_->cancel(*running->second.timeout);
    running_.erase(running);
    running_count_ = running_.size();
  }
  forget_permits(std::span(&key, 1));
}

void EngineCore::retry_later(const InstanceId& id, std::uint16_t machine, const WorkRecord& work) {
  PAWL_ASSERT(work.not_before && work.attempt > 0, "only a failed attempt is retried", work.number);
  // A clock that was set back must not make the retry wait longer than requested.
  auto wait = std::max(*work.not_before - runtime_.now(), Duration::zero());
  if (work.failed_at) wait = std::min(wait, *work.not_before - *work.failed_at);
  lane_->after(wait, [this, key = WorkKey{id, work.number}, machine, name = work.name] {
    const auto* head = heads_.find(key.first);
    const auto* waiting = find_work(head, key.second);
    if (waiting == nullptr || !waiting->not_before || !may_work(key.first, head->extras->queue)) return;
    request_permit(key, machine, name);
  });
}

// Permits and queues.

void EngineCore::request_permit(const WorkKey& key, std::uint16_t machine, const std::string& name) {
  if (const auto running = running_.find(key); running != running_.end()) {
    running->second.again = true;  // the previous attempt has not returned
    return;
  }
  if (is_leased(machine, name)) return offer(key, machine, name);
  const auto* work = find_work(heads_.find(key.first), key.second);
  if (work == nullptr) return;
  PAWL_ASSERT(work->name == name, "a permit is for recorded work", name, work->name);
  PermitChanges changes;
  {
    const std::lock_guard lock(pools_mutex_);
    auto& pool = pool_of(machine, *work);
    if (pool.held(HolderName(key).view()) != 0) return;
    if (auto requested = pool.request(HolderName(key).view(), 1, 1)) changes = *std::move(requested);
  }
  granted(changes);
}

void EngineCore::forget_permits(std::span<const WorkKey> keys, Pools which) {
  PermitChanges changes;
  {
    const std::lock_guard lock(pools_mutex_);
    for (const auto& key : keys) {
      const HolderName holder(key);
      for (auto& [name, pool] : pools_) {
        if (!pool.knows(holder.view())) continue;
        if (which == Pools::own && name != kWorkThreads && name != kStartedAttempts) continue;
        auto freed = pool.forget(holder.view()).value();
        std::ranges::move(freed, std::back_inserter(changes));
      }
    }
  }
  if (changes.empty()) return;
  // One of them may have been granted the permit of another before it was forgotten itself.
  const std::set<WorkKey> gone(keys.begin(), keys.end());
  std::erase_if(changes, [&](const PermitChange& change) { return gone.contains(key_of(change.holder)); });
  granted(changes);
}

/// Starts the attempts that were granted a permit. An attempt is recorded before it runs.
void EngineCore::granted(const PermitChanges& changes) {
  for (const auto& change : changes) {
    if (change.kind != PermitChange::Kind::grant) continue;
    PAWL_ASSERT(change.permits == 1, "a piece of work gets one permit", change.permits);
    const auto key = key_of(change.holder);
    if (key.second == kQueue) {
      // Posted, because its head may belong to the batch that is still open.
      post([this, id = key.first] { admit(id); });
    } else {
      start_attempt(key);
    }
  }
}

/// The instance has the permit of its queue: starts its work.
void EngineCore::admit(const InstanceId& id) {
  const auto* head = heads_.find(id);
  if (head == nullptr || !head->extras || !head->extras->queue) {
    const WorkKey key{id, kQueue};
    return forget_permits(std::span(&key, 1));
  }
  PAWL_ASSERT(registry_.knows(head->machine), "only instances of known machines enter queues", head->machine);
  if (!may_work(id, head->extras->queue)) return;  // it has left and entered the queue again
  for (const auto& work : head->extras->work) {
    const WorkKey key{id, work.number};
    const bool has_begun = [&] {
      const std::lock_guard lock(pools_mutex_);
      return running_.contains(key) || claiming_.contains(key) || unclaimed_.contains(key) ||
             pool_of(head->machine, work).held(HolderName(key).view()) != 0;
    }();
    if (!has_begun) resume_work(*head, work);
  }
}

void EngineCore::leave_queue(const InstanceId& id, const QueueRecord& queue) {
  PermitChanges changes;
  {
    const std::lock_guard lock(pools_mutex_);
    const auto pool = pools_.find(queue.pool);
    if (pool == pools_.end()) return;
    if (auto freed = pool->second.forget(HolderName({id, kQueue}).view())) changes = *std::move(freed);
  }
  granted(changes);
}

/// Enters the queue again in which it was before the restart.
void EngineCore::enter_queue(const InstanceId& id, const QueueRecord& queue) {
  PermitChanges changes;
  {
    const std::lock_guard lock(pools_mutex_);
    const auto pool = pools_.find(queue.pool);
    if (pool == pools_.end()) return;  // no longer configured: it need not wait
    if (auto asked = pool->second.request(HolderName({id, kQueue}).view(), 1, 1, queue.priority))
      changes = *std::move(asked);
  }
  granted(changes);
}

void EngineCore::start_attempt(const WorkKey& key) {
  PAWL_ASSERT(key.second != kQueue, "a place in a queue is not a piece of work");
  // Without a head the instance was created in the open batch; the command is decided after it.
  const auto* head = heads_.find(key.first);
  const auto* work = find_work(head, key.second);
  const auto machine = head != nullptr ? head->machine : std::uint16_t{0};
  // Recorded already; unless the work has ended in the batch that is being published.
  if (unclaimed_.erase(key) != 0 && work != nullptr) return start_work(key.first, machine, *work);
  enqueue({.targets = {{machine,
                        key.first,
                        {},
                        BeginWork{.number = key.second, .after = work != nullptr ? work->attempt : 0}}},
           .done =
               [this, key](const Result<std::vector<Instance>>& outcome) {
                 // The engine is closing: the permit is not needed, and `close` answers the claim.
                 if (!outcome && outcome.error().code() == Code::stopped) return;
                 // Nothing was recorded: the work is gone or cannot start, so its permit goes back.
                 if (!outcome || outcome->empty()) attempt_not_started(key);
               },
           .internal = true});
}

/// Gives back the permits and places in queues of work that the batch itself has both created and ended. To
/// `act`, which compares instances before and after the batch, such work never existed.
void EngineCore::release_unused(const Batch& batch) {
  std::vector<WorkKey> gone;
  PermitChanges changes;
  for (const auto& key : batch.reserved) {
    const auto* head = heads_.find(key.first);
    if (key.second != kQueue) {
      if (find_work(head, key.second) == nullptr) gone.push_back(key);
      continue;
    }
    const auto* extras = head != nullptr ? head->extras.get() : nullptr;
    const std::lock_guard lock(pools_mutex_);
    for (auto& [name, pool] : pools_) {
      const HolderName holder(key);
      const bool stays = extras != nullptr && extras->queue && extras->queue->pool == name;
      if (stays || !pool.knows(holder.view())) continue;
      auto freed = pool.forget(holder.view()).value();
      std::ranges::move(freed, std::back_inserter(changes));
    }
  }
  if (!gone.empty()) forget_permits(gone);
  granted(changes);
}

void EngineCore::attempt_not_started(const WorkKey& key) {
  forget_permits(std::span(&key, 1));
  claim_failed(key);
}

}  // namespace pawl
