// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pawl/instance_id.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// Names one setting of one timer.
struct TimerKey {
  InstanceId id;
  std::string name;
  std::int64_t generation = 0;
  auto operator<=>(const TimerKey&) const = default;
};

/// Timers by their deadlines on the monotonic clock. Pure; not thread-safe.
class TimerQueue {
 public:
  void add(TimerKey key, Instant deadline) {
    const auto [place, added] = deadlines_.emplace(std::move(key), deadline);
    if (added) order_.emplace(deadline, place->first);
  }
  void remove(const TimerKey& key) {
    const auto found = deadlines_.find(key);
    if (found == deadlines_.end()) return;
    order_.erase({found->second, key});
    deadlines_.erase(found);
  }
  std::optional<Instant> next() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
  }
  /// Removes and returns those that are due, earliest first.
  std::vector<TimerKey> take_due(Instant now) {
    std::vector<TimerKey> due;
    while (!order_.empty() && order_.begin()->first <= now) {
      due.push_back(order_.begin()->second);
      remove(due.back());
    }
    return due;
  }
  std::size_t size() const { return order_.size(); }

 private:
  std::map<TimerKey, Instant> deadlines_;
  std::set<std::pair<Instant, TimerKey>> order_;
};

}  // namespace pawl
