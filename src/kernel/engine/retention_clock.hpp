// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What time it is for retention. The wall clock alone must not decide what is old: set ahead by mistake, it
/// would make all history old at once. So this clock advances by measured time only.
///
///     RetentionClock clock({.per_opening = keep / 2, .settled = keep});
///     clock.open(stored, {runtime.now(), runtime.instant(), newest});
///     const auto cut = clock.advance({runtime.now(), runtime.instant(), newest}) - keep;

#include <algorithm>
#include <optional>

#include "pawl/assert.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// Used by one thread.
class RetentionClock {
 public:
  struct Limits {
    Duration per_opening{};  ///< nobody measures the time between two processes; so much of it counts
    Duration settled{};      ///< after so much measured time without a jump the wall clock is believed
  };
  /// What the next process needs to know.
  struct Reading {
    Time clock{};
    Time wall{};
  };

  /// What the other clocks say.
  struct Moment {
    Time wall{};
    Instant instant{};
    Time newest{};  ///< the time of the newest entry

    /// The time that the next entry would have. Nothing is older than the difference to this.
    Time log_time() const { return std::max(wall, newest); }
  };

  RetentionClock() = default;
  explicit RetentionClock(Limits limits) : limits_(limits) {}

  /// `last` is what the process before this one has stored; none: the store is new.
  void open(const std::optional<Reading>& last, const Moment& now) {
    PAWL_ASSERT(limits_.per_opening >= Duration::zero(), "no time counts backwards",
                limits_.per_opening.count());
    clock_ = now.wall;
    if (last) clock_ = last->clock + std::clamp(now.wall - last->wall, Duration::zero(), limits_.per_opening);
    // Where it is ahead, time was counted that did not pass.
    clock_ = std::min(clock_, now.log_time());
    wall_ = steady_wall_ = now.wall;
    instant_ = steady_ = now.instant;
  }

  /// Never more than the log's own time: what is written now is not old, wherever the clocks stand.
  Time advance(const Moment& now) {
    const auto [wall, instant, newest] = now;
    PAWL_ASSERT(instant >= instant_, "the monotonic clock does not go back");
    const auto before = clock_;
    clock_ += instant - instant_;
    wall_ = wall;
    instant_ = instant;
    const auto jumped = (wall - steady_wall_) - (instant - steady_);
    if (jumped > kTolerance || jumped < -kTolerance) {
      steady_ = instant;
      steady_wall_ = wall;
    }
    // What was written before the last jump is old by now, whatever the clock said then, and what was written
    // since has the time of a clock that ran evenly.
    if (instant - steady_ >= limits_.settled) clock_ = std::max(clock_, wall);
    PAWL_ASSERT(clock_ >= before, "what is old stays old");
    return std::min(clock_, now.log_time());
  }

  Reading reading() const { return {clock_, wall_}; }

 private:
  /// By how much a clock that is adjusted slowly may differ.
  static constexpr Duration kTolerance = std::chrono::minutes(1);

  Limits limits_;
  Time clock_{};
  Time wall_{};
  Instant instant_{};
  Instant steady_{};  ///< since when the wall clock has not jumped
  Time steady_wall_{};
};

}  // namespace pawl
