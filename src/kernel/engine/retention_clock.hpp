// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What time it is for retention. The wall clock alone must not decide what is old: set ahead by mistake, it
/// would make all history old at once. So this clock advances by measured time only.
///
///     RetentionClock clock({.per_opening = keep / 2, .settled = keep});
///     clock.open(stored, runtime.now(), runtime.instant());
///     const auto cut = clock.advance(runtime.now(), runtime.instant()) - keep;

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

  RetentionClock() = default;
  explicit RetentionClock(Limits limits) : limits_(limits) {}

  /// `last` is what the process before this one has stored; none: the store is new.
  void open(const std::optional<Reading>& last, Time wall, Instant instant) {
    clock_ = wall;
    if (last) clock_ = last->clock + std::clamp(wall - last->wall, Duration::zero(), limits_.per_opening);
    wall_ = steady_wall_ = wall;
    instant_ = steady_ = instant;
  }

  Time advance(Time wall, Instant instant) {
    PAWL_ASSERT(instant >= instant_, "the monotonic clock does not go back");
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
    return clock_;
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
