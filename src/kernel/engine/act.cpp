// SPDX-License-Identifier: Apache-2.0
// Acts on what has become durable: timers, messages and waiting callers; work.cpp handles work. Runs on the
// lane.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/engine/core.hpp"
#include "kernel/engine/error_class.hpp"
#include "pawl/assert.hpp"

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

/// Compares the extras of an instance before and after the commit, and starts or stops what differs.
void EngineCore::act(const InstanceId& id, std::uint16_t machine, const Extras* before, const Extras* after) {
  PAWL_ASSERT(registry_.knows(machine) && !poisoned_, "the engine acts only on what is durable", machine);
  if (before != nullptr) {
    for (const auto& timer : before->timers) {
      if (!has_timer(after, timer)) timers_.remove({id, timer.name, timer.generation});
    }
    for (const auto& work : before->work) {
      if (find_number(after != nullptr ? &after->work : nullptr, work.number) == nullptr)
        work_cancelled({id, work.number});
    }
    const bool stays =
        before->queue && after != nullptr && after->queue && after->queue->pool == before->queue->pool;
    if (before->queue && !stays) leave_queue(id, *before->queue);
  }
  if (after == nullptr) return;
  for (const auto& timer : after->timers) {
    if (!has_timer(before, timer)) arm_timer(id, timer);
  }
  for (const auto& work : after->work) {
    act_on_work(id, machine, find_number(before != nullptr ? &before->work : nullptr, work.number), work);
  }
  for (const auto& message : after->outbox) {
    if (find_number(before != nullptr ? &before->outbox : nullptr, message.number) == nullptr) {
      deliver(id, machine, message);
    }
  }
}

// Timers.

void EngineCore::arm_timer(const InstanceId& id, const TimerRecord& timer) {
  PAWL_ASSERT(timer.due >= timer.set, "a timer is due after it was set", timer.name);
  // A clock that was set back must not make the timer wait longer than requested.
  const auto wait = std::clamp(timer.due - runtime_.now(), Duration::zero(), timer.due - timer.set);
  timers_.add({id, timer.name, timer.generation}, runtime_.instant() + wait);
}

/// Fires the timers that are due and schedules the call for the next one.
void EngineCore::wake_timers() {
  for (auto& due : timers_.take_due(runtime_.instant())) {
    const auto* head = heads_.find(due.id);
    if (head == nullptr) continue;
    ++timers_due_;
    enqueue({.targets = {{head->machine, due.id, {}, FireTimer{std::move(due.name), due.generation}}},
             .done =
                 [this](const auto&) {
                   PAWL_ASSERT(timers_due_ > 0, "a due timer is consumed once");
                   --timers_due_;
                 },
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

// Messages.

void EngineCore::deliver(const InstanceId& sender, std::uint16_t machine, const MessageRecord& message) {
  PAWL_ASSERT(message.number > 0, "a message has a unique number", message.number);
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
             // Nothing was decided: opening the store again delivers the message again.
             if (classify(outcome.error().code()) == ErrorClass::refusal)
               acknowledge(sender, machine, number, outcome.error());
           },
       .internal = true});
}

void EngineCore::acknowledge(const InstanceId& sender, std::uint16_t machine, std::int64_t number,
                             std::optional<Error> refused) {
  PAWL_ASSERT(registry_.knows(machine), "the sender of a message belongs to a known machine", machine);
  enqueue(
      {.targets = {{machine, sender, {}, AcknowledgeMessage{number, std::move(refused)}}}, .internal = true});
}

// Waiting callers.

void EngineCore::wake_readers(const Batch& batch) {
  auto waking = blocked_calls_.wake_for_entries_up_to(durable_seq_);
  if (!waking.any_for_states()) return;
  for (const auto& draft : batch.drafts) {
    if (!draft.newest) continue;
    waking.wake_for_state(draft.id, draft.state, registry_.finished(draft.machine, draft.state));
  }
}

bool EngineCore::is_reached(std::uint16_t machine, std::uint16_t state,
                            const std::vector<std::string>& states) const {
  return registry_.finished(machine, state) ||
         std::ranges::find(states, registry_.state_name(machine, state)) != states.end();
}

void EngineCore::wake_watchers(const Batch& batch) {
  for (const auto& draft : batch.drafts) {
    if (watchers_.empty()) return;
    if (!draft.newest) continue;
    for (auto [watcher, end] = watchers_.equal_range(draft.id); watcher != end;) {
      if (!is_reached(draft.machine, draft.state, watcher->second.states)) {
        ++watcher;
        continue;
      }
      auto node = watchers_.extract(watcher++);
      PAWL_ASSERT(node.mapped().done, "a watcher is answered once", node.mapped().number);
      if (node.mapped().timeout) lane_->cancel(*node.mapped().timeout);
      auto instance = to_instance(draft);
      instance.value = draft.data.share_value();
      node.mapped().done(std::move(instance));
    }
  }
}

/// Nothing becomes durable from here on: wakes every blocked caller.
void EngineCore::end_waiting(const Error& why) {
  PAWL_ASSERT(poisoned_ || stopped_, "blocked callers are woken only when the engine ends", why.to_string());
  blocked_calls_.end(why);
}

/// Answers every watcher. Pass the lane to cancel their timeouts, null if it is gone.
void EngineCore::end_watching(const Error& why, Lane* lane) {
  for (auto& [id, watcher] : std::exchange(watchers_, {})) {
    PAWL_ASSERT(watcher.done, "a watcher is answered once", watcher.number);
    if (watcher.timeout && lane != nullptr) lane->cancel(*watcher.timeout);
    watcher.done(fail(why));
  }
}

/// The engine has ended: answers every waiting caller and asks running work to stop, because
/// another owner may have started the same work.
void EngineCore::end_serving(const Error& why) {
  PAWL_ASSERT(poisoned_.has_value(), "only a poisoned engine stops its running work", why.to_string());
  end_waiting(why);
  end_watching(why, lane_);
  end_claims(why, lane_);
  for (auto& [key, running] : running_) running.stop.request_stop();
}

/// Checks the ownership periodically while a caller waits or work runs: an owner that commits nothing would
/// not notice a takeover.
void EngineCore::watch_ownership() {
  if (!leased_ || ownership_watched_.exchange(true)) return;
  post([this] { lane_->after(kPause, [this] { check_ownership(); }); });
}

void EngineCore::check_ownership() {
  PAWL_ASSERT(leased_ && ownership_watched_, "only a lease is watched, by one timer at a time");
  ownership_watched_ = false;
  if (poisoned_) return;
  const auto owner = store_->still_owner();
  if (!owner && store_->has_ended()) {
    poisoned_ = owner.error();
    options_.log.error("another owner has taken over", {{"error", owner.error().to_string()}});
    return end_serving(*poisoned_);
  }
  if (!owner) {
    // The lease has run out but may still be renewed. Until then no answer is reliable, not even that nothing
    // has happened.
    end_watching(owner.error(), lane_);
    blocked_calls_.wake_all();
  }
  const bool busy = !watchers_.empty() || !claims_.empty() || !claiming_.empty() || !running_.empty() ||
                    !postponed_.empty() || !blocked_calls_.empty();
  if (busy) watch_ownership();
}

/// Calls `done` when the instance is in one of these states, or finished.
void EngineCore::watch_state(std::string_view machine, std::string_view key, std::vector<std::string> states,
                             std::optional<Duration> timeout, WatchDone done) {
  const auto number = registry_.find(machine);
  if (!number) return done(fail(number.error()));
  Watcher watcher{std::move(states), std::move(done)};
  post([this, id = registry_.id(*number, key), watcher = std::move(watcher), timeout]() mutable {
    PAWL_ASSERT(watcher.done && watcher.number == 0, "a watcher is registered once, before it is answered");
    const auto* head = heads_.find(id);
    if (head == nullptr) return watcher.done(fail(Code::unknown_instance, "there is no such instance"));
    if (poisoned_) return watcher.done(fail(*poisoned_));
    if (const auto owner = store_->still_owner(); !owner) return watcher.done(fail(owner.error()));
    if (is_reached(head->machine, head->state, watcher.states)) {
      auto instance = to_instance(*head);
      if (!instance.data.empty()) return watcher.done(std::move(instance));
      auto data = load_data(id, head->machine, head->seq);
      if (!data) return watcher.done(fail(std::move(data).error()));
      instance.data = *std::move(data);
      return watcher.done(std::move(instance));
    }
    watcher.number = ++last_watcher_;
    const auto place = watchers_.emplace(id, std::move(watcher));
    watch_ownership();
    if (!timeout) return;
    place->second.timeout = lane_->after(*timeout, [this, id, number = place->second.number] {
      auto [expired, end] = watchers_.equal_range(id);
      while (expired != end && expired->second.number != number) ++expired;
      if (expired == end) return;  // answered already
      auto node = watchers_.extract(expired);
      const auto* present = heads_.find(id);
      node.mapped().done(
          fail(Code::timed_out,
               fmt::format("it is still {}", present == nullptr
                                                 ? "unknown"
                                                 : registry_.state_name(present->machine, present->state))));
    });
  });
}

}  // namespace pawl
