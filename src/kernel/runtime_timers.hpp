// SPDX-License-Identifier: Apache-2.0
#pragma once

// The timers of one lane, for both runtimes.

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "pawl/runtime.hpp"

namespace pawl::detail {

/// `now + delay`, kept within a hundred years so that no later arithmetic on nanoseconds overflows.
inline Instant deadline_after(Instant now, Duration delay) {
  constexpr Duration kLongest = std::chrono::hours{24 * 36'500};
  return now + std::clamp(delay, Duration::zero(), kLongest);
}

/// Tasks by deadline; equal deadlines keep the order in which they were added. Externally synchronised.
class TimerQueue {
 public:
  /// An id that no timer has; for a task that needs no waiting.
  TimerId skip() { return TimerId{++last_}; }

  TimerId add(Instant deadline, Task task) {
    const auto timer = skip();
    deadlines_.emplace(timer, deadline);
    tasks_.emplace(std::pair{deadline, timer}, std::move(task));
    return timer;
  }

  /// Takes a timer out, so that the caller can destroy its task outside any lock. Empty when there is none.
  std::optional<Task> remove(TimerId timer) {
    const auto deadline = deadlines_.find(timer);
    if (deadline == deadlines_.end()) return std::nullopt;
    auto entry = tasks_.extract({deadline->second, timer});
    deadlines_.erase(deadline);
    return std::move(entry.mapped());
  }

  /// Takes out the earliest timer whose deadline has passed.
  std::optional<Task> pop_due(Instant now) {
    if (tasks_.empty() || tasks_.begin()->first.first > now) return std::nullopt;
    auto entry = tasks_.extract(tasks_.begin());
    deadlines_.erase(entry.key().second);
    return std::move(entry.mapped());
  }

  std::optional<Instant> next() const {
    return tasks_.empty() ? std::nullopt : std::optional{tasks_.begin()->first.first};
  }

  /// Takes out everything; ids go on from where they were.
  std::map<std::pair<Instant, TimerId>, Task> take_all() {
    deadlines_.clear();
    return std::exchange(tasks_, {});
  }

 private:
  std::uint64_t last_ = 0;
  std::map<std::pair<Instant, TimerId>, Task> tasks_;
  std::unordered_map<TimerId, Instant> deadlines_;
};

}  // namespace pawl::detail
