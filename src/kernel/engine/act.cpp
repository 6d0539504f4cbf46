// SPDX-License-Identifier: Apache-2.0
// Acting on what has become durable: timers, work, messages, those who wait. Runs on the lane, except the
// work.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kernel/engine/core.hpp"
#include "pawl/assert.hpp"
#include "pawl/sim.hpp"

namespace pawl {
namespace {

template <class Record>
const Record* find_number(const std::vector<Record>* records, std::int64_t number) {
  if (records == nullptr) return nullptr;
  const auto found = std::ranges::find(*records, number, &Record::number);
  return found == records->end() ? nullptr : &*found;
}

bool has_timer(const Extras* extras, const TimerRecord& timer) {
  return extras != nullptr && std::ranges::any_of(extras->timers, [&](const TimerRecord& other) {
           return other.name == timer.name && other.generation == timer.generation;
         });
}

}  // namespace

/// Compares what an instance carried before and carries now, and starts or stops accordingly.
void EngineCore::act(const InstanceId& id, std::uint16_t machine, const Extras* before, const Extras* after) {
  if (before != nullptr) {
    for (const auto& timer : before->timers) {
      if (!has_timer(after, timer)) timers_.remove({id, timer.name, timer.generation});
    }
    for (const auto& work : before->work) {
      if (find_number(after != nullptr ? &after->work : nullptr, work.number) == nullptr)
        work_gone({id, work.number});
    }
  }
  if (after == nullptr) return;
  for (const auto& timer : after->timers) {
    if (!has_timer(before, timer)) arm_timer(id, timer);
  }
  for (const auto& work : after->work) {
    const auto* older = find_number(before != nullptr ? &before->work : nullptr, work.number);
    if (work.attempt > (older != nullptr ? older->attempt : 0)) {
      start_work(id, machine, work);
    } else if (work.not_before && (older == nullptr || !older->not_before)) {
      retry_later(id, machine, work);
    }
  }
  for (const auto& message : after->outbox) {
    if (find_number(before != nullptr ? &before->outbox : nullptr, message.number) == nullptr) {
      deliver(id, machine, message);
    }
  }
}

// Timers.

void EngineCore::arm_timer(const InstanceId& id, const TimerRecord& timer) {
  // A clock that was set back must not make anybody wait longer than was asked for.
  const auto wait = std::clamp(timer.due - runtime_.now(), Duration::zero(), timer.due - timer.set);
  timers_.add({id, timer.name, timer.generation}, runtime_.instant() + wait);
}

/// Fires what is due and asks to be called again for what comes next.
void EngineCore::wake_timers() {
  for (auto& due : timers_.take_due(runtime_.instant())) {
    const auto* head = heads_.find(due.id);
    if (head == nullptr) continue;
    ++timers_due_;
    enqueue({.targets = {{head->machine, due.id, {}, FireTimer{std::move(due.name), due.generation}}},
             .done = [this](const auto&) { --timers_due_; },
             .internal = true});
  }
  timer_count_ = timers_.size();
  const auto next = timers_.next();
  if (next == timer_wake_at_) return;
  if (timer_wake_) lane_->cancel(*timer_wake_);
  timer_wake_.reset();
  timer_wake_at_ = next;
  if (!next) return;
  timer_wake_ = lane_->after(*next - runtime_.instant(), [this] {
    timer_wake_.reset();
    timer_wake_at_.reset();
    wake_timers();
  });
}

// Work. A piece of work stands in its pool from the moment it is asked for until it is consumed or given up.

std::string EngineCore::holder_of(const WorkKey& key) {
  return fmt::format("{}/{}", key.first.to_string(), key.second);
}

PermitPool& EngineCore::pool_of(std::uint16_t machine, std::string_view work) {
  const auto& works = registry_.entry(machine).works;
  const auto found = works.find(work);
  const auto pool =
      pools_.find(found == works.end() ? std::string_view{} : std::string_view(found->second.options.pool));
  return pool == pools_.end() ? pools_.find("")->second : pool->second;
}

void EngineCore::start_work(const InstanceId& id, std::uint16_t machine, const WorkRecord& work) {
  const WorkKey key{id, work.number};
  const auto& handlers = registry_.entry(machine).works;
  const auto handler = handlers.find(work.name);
  if (handler == handlers.end()) {
    work_returned(
        key, machine, work.attempt,
        fail(Code::unknown_name, fmt::format("no handler is registered for work \"{}\"", work.name)));
    return;
  }
  auto job = [this, key, machine, work, run = &handler->second.run,
              instance = std::string(heads_.find(id)->key.view())](std::stop_token stop) {
    const WorkContext context{.machine = registry_.machine_name(machine),
                              .key = instance,
                              .work = work.name,
                              .number = work.number,
                              .attempt = work.attempt,
                              .stop = std::move(stop)};
    Result<Reply> result;
    try {
      result = (*run)(context, work.payload);
    } catch (const sim::Crashed&) {
      throw;
    } catch (const std::exception& thrown) {
      result = fail(Code::work_threw,
                    fmt::format("the handler of work \"{}\" threw: {}", work.name, thrown.what()));
    } catch (...) {
      result = fail(Code::work_threw, fmt::format("the handler of work \"{}\" threw", work.name));
    }
    post([this, key, machine, attempt = work.attempt, result = std::move(result)]() mutable {
      work_returned(key, machine, attempt, std::move(result));
    });
  };
  const auto submitted = workers_->submit(std::move(job));
  if (!submitted) {
    work_returned(key, machine, work.attempt, fail(submitted.error()));
    return;
  }
  RunningWork running{.stop = *submitted, .attempt = work.attempt};
  if (const auto timeout = handler->second.options.timeout) {
    running.has_timeout = true;
    running.timeout =
        lane_->after(*timeout, [this, key, attempt = work.attempt] { work_timed_out(key, attempt); });
  }
  running_.insert_or_assign(key, std::move(running));
  running_count_ = running_.size();
}

void EngineCore::work_timed_out(WorkKey key, std::uint32_t attempt) {
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.attempt != attempt) return;
  found->second.timed_out = true;
  found->second.stop.request_stop();
}

/// A handler has returned: its outcome becomes a commit, and its permit goes to the next in line.
void EngineCore::work_returned(WorkKey key, std::uint16_t machine, std::uint32_t attempt,
                               Result<Reply> result) {
  bool timed_out = false;
  if (const auto found = running_.find(key); found != running_.end() && found->second.attempt == attempt) {
    timed_out = found->second.timed_out;
    if (found->second.has_timeout) lane_->cancel(found->second.timeout);
    running_.erase(found);
    running_count_ = running_.size();
  }
  forget_permits(std::span(&key, 1));
  const auto* head = heads_.find(key.first);
  const auto* work = head != nullptr && head->extras ? find_number(&head->extras->work, key.second) : nullptr;
  if (work == nullptr) return;  // cancelled meanwhile

  if (result && result->error) result = fail(*result->error);
  if (result) {
    enqueue({.targets = {{machine, key.first, {}, FinishWork{key.second, attempt, std::move(result->event)}}},
             .internal = true});
    return;
  }
  auto error = std::move(result).error();
  if (timed_out)
    error = Error(Code::timed_out, fmt::format("attempt {} of work \"{}\" took too long: {}", attempt,
                                               work->name, error.message()));
  const auto& handlers = registry_.entry(machine).works;
  const auto handler = handlers.find(work->name);
  const auto policy = handler == handlers.end() ? kNever : handler->second.options.retry;
  FailWork failed{key.second, attempt, error, std::nullopt, std::nullopt};
  if (const auto delay = delay_after(policy, attempt, runtime_.random())) {
    failed.not_before = runtime_.now() + *delay;
  } else if (handler != handlers.end() && handler->second.options.failed) {
    failed.event = handler->second.options.failed(error).event;
  }
  enqueue({.targets = {{machine, key.first, {}, std::move(failed)}}, .internal = true});
}

/// The work is no longer wanted. What runs is asked to stop; its permit is free when it has returned.
void EngineCore::work_gone(const WorkKey& key) {
  if (const auto running = running_.find(key); running != running_.end()) {
    running->second.stop.request_stop();
  } else {
    forget_permits(std::span(&key, 1));
  }
}

void EngineCore::retry_later(const InstanceId& id, std::uint16_t machine, const WorkRecord& work) {
  const auto wait = std::max(*work.not_before - runtime_.now(), Duration::zero());
  lane_->after(wait, [this, key = WorkKey{id, work.number}, machine, name = work.name] {
    request_permit(key, machine, name);
  });
}

void EngineCore::request_permit(const WorkKey& key, std::uint16_t machine, const std::string& name) {
  PermitChanges changes;
  {
    const std::lock_guard lock(pools_mutex_);
    if (auto requested = pool_of(machine, name).request(holder_of(key), 1, 1))
      changes = *std::move(requested);
  }
  granted(changes);
}

void EngineCore::forget_permits(std::span<const WorkKey> keys) {
  PermitChanges changes;
  std::set<std::string, std::less<>> gone;
  {
    const std::lock_guard lock(pools_mutex_);
    for (const auto& key : keys) {
      const auto holder = gone.insert(holder_of(key)).first;
      for (auto& [name, pool] : pools_) {
        // Most pools do not know this holder, which is no error here.
        if (auto freed = pool.forget(*holder)) changes.insert(changes.end(), freed->begin(), freed->end());
      }
    }
  }
  // One of them may have got the permit of another before it was forgotten itself.
  std::erase_if(changes, [&](const PermitChange& change) { return gone.contains(change.holder); });
  granted(changes);
}

/// Whoever got a permit begins its attempt; the attempt is recorded before it is made.
void EngineCore::granted(const PermitChanges& changes) {
  for (const auto& change : changes) {
    if (change.kind != PermitChange::Kind::grant) continue;
    const auto slash = change.holder.find('/');
    WorkKey key{parse_instance_id(std::string_view(change.holder).substr(0, slash)).value(), 0};
    std::from_chars(change.holder.data() + slash + 1, change.holder.data() + change.holder.size(),
                    key.second);
    begin_attempt(key);
  }
}

void EngineCore::begin_attempt(const WorkKey& key) {
  // No head yet: the instance was created in the batch that is still open. It will be there by then.
  const auto* head = heads_.find(key.first);
  const auto machine = head != nullptr ? head->machine : std::uint16_t{0};
  enqueue({.targets = {{machine, key.first, {}, BeginWork{key.second}}},
           .done =
               [this, key](const Result<std::vector<Instance>>& outcome) {
                 // Nothing was recorded: the work has gone, so its permit goes back.
                 if (outcome && outcome->empty()) forget_permits(std::span(&key, 1));
               },
           .internal = true});
}

// Messages.

void EngineCore::deliver(const InstanceId& sender, std::uint16_t machine, const MessageRecord& message) {
  const auto receiver = registry_.find(message.machine);
  if (!receiver) return acknowledge(sender, machine, message.number, receiver.error());
  const auto event = registry_.definition(*receiver).find_event(message.event);
  if (!event) return acknowledge(sender, machine, message.number, event.error());
  const auto name = fmt::format("message {} {}", sender.to_string(), message.number);
  enqueue(
      {.targets = {{*receiver, registry_.id(*receiver, message.key), message.key,
                    SendEvent{.event = *event, .payload = message.payload}}},
       .tag = RequestTag{.id = digest16(name)},
       .done =
           [this, sender, machine, number = message.number](const Result<std::vector<Instance>>& outcome) {
             if (outcome) return acknowledge(sender, machine, number, std::nullopt);
             const auto code = outcome.error().code();
             const bool undecided =
                 code == Code::stopped || code == Code::store_poisoned || code == Code::outcome_unknown;
             if (!undecided) acknowledge(sender, machine, number, outcome.error());
           },
       .internal = true});
}

void EngineCore::acknowledge(const InstanceId& sender, std::uint16_t machine, std::int64_t number,
                             std::optional<Error> refused) {
  enqueue(
      {.targets = {{machine, sender, {}, AcknowledgeMessage{number, std::move(refused)}}}, .internal = true});
}

// Those who wait.

void EngineCore::wake_readers(const Batch& batch) {
  const std::lock_guard lock(waiters_mutex_);
  // Not those who have seen this batch already: they wait for the next.
  const auto seen = entry_waiters_.lower_bound(durable_seq_);
  for (auto waiter = entry_waiters_.begin(); waiter != seen; ++waiter) waiter->second->open();
  if (state_waiters_.empty()) return;
  for (const auto& draft : batch.drafts) {
    if (!draft.newest) continue;
    const bool finished = registry_.finished(draft.machine, draft.state);
    auto [waiter, end] = state_waiters_.equal_range(draft.id);
    for (; waiter != end; ++waiter) {
      if (finished || std::ranges::find(waiter->second.states, draft.state) != waiter->second.states.end()) {
        waiter->second.gate->open();
      }
    }
  }
}

/// From here on nothing becomes durable, so nobody need wait for it.
void EngineCore::end_waiting(const Error& why) {
  const std::lock_guard lock(waiters_mutex_);
  if (!ended_) ended_ = why;
  for (const auto& [after, gate] : entry_waiters_) gate->open();
  for (const auto& [id, waiter] : state_waiters_) waiter.gate->open();
}

}  // namespace pawl
