// SPDX-License-Identifier: Apache-2.0
#include "workers/types/check_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

constexpr Duration kShortest = 1ms;
constexpr Duration kLongest = 2s;  // the supervisor's default timeout for a collection is 2.2 s
constexpr std::uint32_t kMostInARow = 1000;

}  // namespace

void CheckRun::turn(bool up, Time now) {
  if (state_.up != up || state_.since == Time{}) state_.since = now;
  state_.up = up;
}

CheckState CheckRun::passed(Duration latency, Time now, const CheckLimits& limits) {
  const std::lock_guard lock(mutex_);
  turn(true, now);
  state_.successes = std::min(state_.successes + 1, limits.healthy_after);
  state_.failures = 0;
  state_.latency = settle_latency(state_.latency, latency);
  state_.error.clear();
  return state_;
}

CheckState CheckRun::failed(std::string error, Time now, const CheckLimits& limits) {
  const std::lock_guard lock(mutex_);
  turn(false, now);
  state_.failures = std::min(state_.failures + 1, limits.unhealthy_after);
  state_.successes = 0;
  state_.latency = Latency::unknown;
  state_.error = std::move(error);
  return state_;
}

Result<void> validate_check(const CheckLimits& limits, Duration timeout) {
  const auto in_a_row = [](std::uint32_t count) { return count >= 1 && count <= kMostInARow; };
  if (!in_a_row(limits.unhealthy_after) || !in_a_row(limits.healthy_after)) {
    return fail(Code::spec_invalid,
                fmt::format("unhealthy_after and healthy_after are {} and {}; each is 1 to {}",
                            limits.unhealthy_after, limits.healthy_after, kMostInARow));
  }
  if (timeout < kShortest || timeout > kLongest) {
    return fail(
        Code::spec_invalid,
        fmt::format("timeout is {}; it is {} to {}, because an observation has to be made within 2.2s",
                    to_string(timeout), to_string(kShortest), to_string(kLongest)),
        {{"field", "timeout"}});
  }
  return {};
}

}  // namespace pawl::workers
