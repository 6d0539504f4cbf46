// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pawl/assert.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// Identifies one setting of one timer.
struct TimerKey {
  InstanceId id;
  std::string name;
  std::int64_t generation = 0;
  auto operator<=>(const TimerKey&) const = default;
};

/// Timers by their deadlines on the monotonic clock. Pure; not thread-safe. Each setting is added once: its
/// generation is never reused.
class TimerQueue {
 public:
  void add(TimerKey key, Instant deadline) {
    const auto [place, added] = deadlines_.emplace(std::move(key), deadline);
    PAWL_ASSERT(added, "one setting of a timer is armed once", place->first.name, place->first.generation);
    order_.insert(&*place);
  }
  void remove(const TimerKey& key) {
    const auto found = deadlines_.find(key);
    if (found == deadlines_.end()) return;
    const auto erased = order_.erase(&*found);
    PAWL_ASSERT(erased == 1, "a timer has one place in the order", key.name, key.generation);
    deadlines_.erase(found);
  }
  std::optional<Instant> next() const {
    return order_.empty() ? std::nullopt : std::optional((*order_.begin())->second);
  }
  /// Removes and returns the due timers, earliest first.
  std::vector<TimerKey> take_due(Instant now) {
    std::vector<TimerKey> due;
    while (!order_.empty() && (*order_.begin())->second <= now) {
      due.push_back((*order_.begin())->first);
      remove(due.back());
    }
    return due;
  }
  std::size_t size() const {
    PAWL_ASSERT(order_.size() == deadlines_.size(), "each timer is in the order", order_.size());
    return order_.size();
  }

 private:
  using Deadlines = std::map<TimerKey, Instant>;
  struct Earlier {
    bool operator()(const Deadlines::value_type* a, const Deadlines::value_type* b) const {
      return std::tie(a->second, a->first) < std::tie(b->second, b->first);
    }
  };

  Deadlines deadlines_;
  std::set<const Deadlines::value_type*, Earlier>
      order_;  // a hundred thousand may wait, so each key is stored once
};

}  // namespace pawl
