// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The clock of retention. The wall clock alone must not decide what is old: set ahead by mistake, it would
/// expire all history at once. This clock advances by measured time only.
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
    Duration per_opening{};  ///< the time between two processes is not measured; at most this much counts
    Duration settled{};      ///< the wall clock is trusted after this much measured time without a jump
  };
  /// Stored for the next process.
  struct Reading {
    Time clock{};
    Time wall{};
  };

  /// The readings of the other clocks.
  struct Moment {
    Time wall{};
    Instant instant{};
    Time newest{};  ///< the time of the newest entry

    /// The time that the next entry would have; ages are measured from it.
    Time log_time() const { return std::max(wall, newest); }
  };

  RetentionClock() = default;
  explicit RetentionClock(Limits limits) : limits_(limits) {}

  /// `last` is the reading that the previous process has stored; empty for a new store.
  void open(const std::optional<Reading>& last, const Moment& now) {
    PAWL_ASSERT(limits_.per_opening >= Duration::zero(), "no time counts backwards",
                limits_.per_opening.count());
    clock_ = now.wall;
    if (last) clock_ = last->clock + std::clamp(now.wall - last->wall, Duration::zero(), limits_.per_opening);
    // A clock that is ahead has counted time that did not pass.
    clock_ = std::min(clock_, now.log_time());
    wall_ = steady_wall_ = now.wall;
    instant_ = steady_ = now.instant;
  }

  /// Never exceeds the log time: what is written now is not old, whatever the clocks say.
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
    // Entries from before the last jump are old by now, whatever the clock said then, and later entries have
    // the times of a clock without jumps.
    if (instant - steady_ >= limits_.settled) clock_ = std::max(clock_, wall);
    PAWL_ASSERT(clock_ >= before, "what is old stays old");
    return std::min(clock_, now.log_time());
  }

  Reading reading() const { return {clock_, wall_}; }

 private:
  /// How far a clock may drift while it is adjusted slowly.
  static constexpr Duration kTolerance = std::chrono::minutes(1);

  Limits limits_;
  Time clock_{};
  Time wall_{};
  Instant instant_{};
  Instant steady_{};  ///< the last jump of the wall clock
  Time steady_wall_{};
};

}  // namespace pawl
