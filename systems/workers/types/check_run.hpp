// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Shared by reachability checks: counts consecutive successes and failures.
///
///     CheckRun run;                                                     // among the tools
///     run.passed(3ms, context.now, limits);
///     run.state().successes;                                            // at most limits.healthy_after

#include <cstdint>
#include <mutex>
#include <string>

#include "pawl/error.hpp"
#include "pawl/time.hpp"
#include "workers/types/buckets.hpp"

namespace pawl::workers {

/// Consecutive results that are needed to change the verdict.
struct CheckLimits {
  std::uint32_t unhealthy_after = 3;
  std::uint32_t healthy_after = 1;
};

struct CheckState {
  bool up = false;
  Time since{};                 ///< when `up` last changed in this instance
  std::uint32_t successes = 0;  ///< consecutive, capped at the number that is needed
  std::uint32_t failures = 0;
  Latency latency = Latency::unknown;
  std::string error{};  ///< of the last check; the same text for the same reason

  bool is_healthy(const CheckLimits& limits) const { return successes >= limits.healthy_after; }
  bool is_unhealthy(const CheckLimits& limits) const { return failures >= limits.unhealthy_after; }
};

/// Thread-safe.
class CheckRun {
 public:
  CheckState passed(Duration latency, Time now, const CheckLimits& limits);
  CheckState failed(std::string error, Time now, const CheckLimits& limits);

 private:
  void turn(bool up, Time now);

  std::mutex mutex_;
  CheckState state_;
};

/// Refuses limits of zero, and a timeout longer than that of the supervisor.
Result<void> validate_check(const CheckLimits& limits, Duration timeout);

}  // namespace pawl::workers
