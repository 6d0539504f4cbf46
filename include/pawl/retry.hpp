// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How often and after which delays a failed operation is retried. A plain value and a pure function, so that
/// retries can be stored, replayed and tested.
///
///     constexpr pawl::RetryPolicy policy{.retries = 5, .first = 200ms, .factor = 2.0, .cap = 30s};
///
///     if (auto delay = pawl::delay_after(policy, failed_attempts, runtime.random())) {
///       lane.after(*delay, try_again);
///     } else {
///       give_up();  // retries_exhausted
///     }

#include <cstdint>
#include <limits>
#include <optional>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// How delays are randomised, so that operations that failed together are not retried together.
enum class Jitter : std::uint8_t {
  none,   ///< the delay exactly
  full,   ///< anything from zero to the delay
  equal,  ///< the delay plus or minus half of it, within the cap
};

/// The delay before retry k (k = 1, 2, …) is `first` × `factor`^(k−1), at most `cap`, then spread by
/// `jitter`. A factor of 1 makes the delay fixed. N retries allow N + 1 executions. A literal type: use it in
/// constexpr definitions. A value: const use is safe concurrently.
struct RetryPolicy {
  /// A number of retries without a limit.
  static constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t retries = 3;
  Duration first = std::chrono::seconds(1);
  double factor = 2.0;
  Duration cap = std::chrono::minutes(5);
  Jitter jitter = Jitter::full;

  bool operator==(const RetryPolicy&) const = default;
};

/// One execution, no retry.
inline constexpr RetryPolicy kNever{.retries = 0};

/// The delay before the next execution after `failed_attempts` failed ones; nullopt if no retry is left. Zero
/// failures need no wait. `random` is any 64 bits and matters only with jitter. The result is never negative
/// and never above the cap, even for an invalid policy; O(log failed_attempts).
std::optional<Duration> delay_after(const RetryPolicy& policy, std::uint32_t failed_attempts,
                                    std::uint64_t random);

/// Refuses invalid policies: negative times, a first delay above the cap, a factor that is not a number
/// or below 1, unlimited retries without a delay. Error: `invalid_argument` with the field `field`.
Result<void> validate(const RetryPolicy& policy);

}  // namespace pawl
