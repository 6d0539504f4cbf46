// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Calls that block a thread until an instance reaches a state, or until the log has a new entry.
///
///     BlockedCalls::ForState call(calls, id, {open});
///     if (!reached(read(id))) runtime.wait(call.gate());
///
/// The lane wakes them:
///
///     auto waking = calls.wake_for_entries_up_to(last);
///     if (waking.any_for_states()) waking.wake_for_state(id, open, finished);

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pawl/assert.hpp"
#include "pawl/error.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/runtime.hpp"
#include "store/store.hpp"

namespace pawl {

/// Thread-safe. Outlives the calls.
class BlockedCalls {
  struct Wanted {
    std::vector<std::uint16_t> states;
    Gate* gate;
  };
  using ForStates = std::multimap<InstanceId, Wanted>;
  using ForEntries = std::multimap<Seq, Gate*>;

 public:
  /// A call that waits for one of these states; registered until it is destroyed. Register before reading the
  /// instance, so that no change is missed. Used by one thread.
  class ForState {
   public:
    ForState(BlockedCalls& all, const InstanceId& id, std::vector<std::uint16_t> states) : all_(all) {
      const std::lock_guard lock(all_.mutex_);
      ended_ = all_.ended_;
      place_ = all_.for_states_.emplace(id, Wanted{std::move(states), &gate_});
    }
    ForState(const ForState&) = delete;
    ForState& operator=(const ForState&) = delete;
    ~ForState() {
      const std::lock_guard lock(all_.mutex_);
      all_.for_states_.erase(place_);
    }
    /// Opens when the state is reached, or at any other reason to read again.
    Gate& gate() { return gate_; }
    /// Set if the engine had ended before the call was registered: nothing opens the gate.
    const std::optional<Error>& ended() const { return ended_; }

   private:
    BlockedCalls& all_;
    Gate gate_;
    std::optional<Error> ended_;
    ForStates::iterator place_;
  };

  /// A call that waits for an entry behind `after`; likewise.
  class ForEntry {
   public:
    ForEntry(BlockedCalls& all, Seq after) : all_(all) {
      const std::lock_guard lock(all_.mutex_);
      ended_ = all_.ended_;
      place_ = all_.for_entries_.emplace(after, &gate_);
    }
    ForEntry(const ForEntry&) = delete;
    ForEntry& operator=(const ForEntry&) = delete;
    ~ForEntry() {
      const std::lock_guard lock(all_.mutex_);
      all_.for_entries_.erase(place_);
    }
    Gate& gate() { return gate_; }
    const std::optional<Error>& ended() const { return ended_; }

   private:
    BlockedCalls& all_;
    Gate gate_;
    std::optional<Error> ended_;
    ForEntries::iterator place_;
  };

  /// Holds the lock while a batch wakes calls.
  class Waking {
   public:
    bool any_for_states() const { return !all_.for_states_.empty(); }
    void wake_for_state(const InstanceId& id, std::uint16_t state, bool finished) {
      auto [call, end] = all_.for_states_.equal_range(id);
      for (; call != end; ++call) {
        const auto& states = call->second.states;
        if (finished || std::ranges::find(states, state) != states.end()) call->second.gate->open();
      }
    }

   private:
    friend class BlockedCalls;
    explicit Waking(BlockedCalls& all) : all_(all), lock_(all.mutex_) {}
    BlockedCalls& all_;
    std::unique_lock<std::mutex> lock_;
  };

  /// Wakes the calls that have not seen the entry `last`; the others have and wait for the next.
  Waking wake_for_entries_up_to(Seq last) {
    Waking waking(*this);
    PAWL_ASSERT(!ended_, "nothing becomes durable after the engine has ended", last);
    const auto seen = for_entries_.lower_bound(last);
    for (auto call = for_entries_.begin(); call != seen; ++call) call->second->open();
    return waking;
  }

  /// Wakes every call, to read again.
  void wake_all() {
    const std::lock_guard lock(mutex_);
    open_all();
  }

  /// Nothing becomes durable any more: wakes every call and marks later ones as ended. The first reason
  /// stays.
  void end(const Error& why) {
    const std::lock_guard lock(mutex_);
    if (!ended_) ended_ = why;
    open_all();
  }
  std::optional<Error> ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  bool empty() const {
    const std::lock_guard lock(mutex_);
    return for_entries_.empty() && for_states_.empty();
  }

 private:
  void open_all() {
    for (const auto& [after, gate] : for_entries_) gate->open();
    for (const auto& [id, wanted] : for_states_) wanted.gate->open();
  }

  mutable std::mutex mutex_;
  ForStates for_states_;
  ForEntries for_entries_;  // by the newest entry that they have seen
  std::optional<Error> ended_;
};

}  // namespace pawl
