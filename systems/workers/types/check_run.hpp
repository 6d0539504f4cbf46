// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What checks of reachability have in common: how often in a row they went well or not, and since when.
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

/// How many in a row are needed for another verdict.
struct CheckLimits {
  std::uint32_t unhealthy_after = 3;
  std::uint32_t healthy_after = 1;
};

struct CheckState {
  bool up = false;
  Time since{};                 ///< of `up`, as far as this instance has seen it
  std::uint32_t successes = 0;  ///< in a row; counting ends where it is enough for a verdict
  std::uint32_t failures = 0;
  Latency latency = Latency::unknown;
  std::string error{};  ///< why the last check failed; the same words for the same reason

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

/// Refuses limits of zero, and a time that the supervisor would never wait for.
Result<void> validate_check(const CheckLimits& limits, Duration timeout);

}  // namespace pawl::workers
