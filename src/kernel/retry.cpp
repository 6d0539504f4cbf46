// SPDX-License-Identifier: Apache-2.0
#include "pawl/retry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

using Count = Duration::rep;

/// factor^exponent, but not above `limit`. By squaring rather than std::pow, so that every platform replays
/// the same delays to the microsecond.
double power(double factor, std::uint32_t exponent, double limit) {
  double result = 1.0;
  while (exponent != 0 && result < limit) {
    if ((exponent & 1U) != 0) result = std::min(result * factor, limit);
    factor = std::min(factor * factor, limit);
    exponent >>= 1U;
  }
  return result;
}

/// The delay before the given retry (from 1), without jitter.
Count plain_delay(const RetryPolicy& policy, std::uint32_t retry, Count cap) {
  const Count first = std::clamp(policy.first.count(), Count{0}, cap);
  if (first == 0 || !(policy.factor > 1.0)) return first;
  const auto limit = static_cast<double>(cap);
  const double delay = static_cast<double>(first) * power(policy.factor, retry - 1, limit);
  // A cap near the largest integer rounds up as a double; the comparison keeps the conversion in range.
  return delay >= limit ? cap : std::min(static_cast<Count>(delay), cap);
}

/// Evenly from [low, high]; both are at least zero, so the span fits.
Count pick(Count low, Count high, std::uint64_t random) {
  const auto span = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<Count>(random % span);
}

std::unexpected<Error> refuse(std::string_view field, std::string message) {
  return fail(Code::invalid_argument, "retry policy: " + std::move(message), {{"field", std::string(field)}});
}

}  // namespace

std::optional<Duration> delay_after(const RetryPolicy& policy, std::uint32_t failed_attempts,
                                    std::uint64_t random) {
  if (failed_attempts == 0) return Duration(0);
  if (policy.retries != RetryPolicy::kUnlimited && failed_attempts > policy.retries) return std::nullopt;
  const Count cap = std::max(policy.cap.count(), Count{0});
  const Count delay = plain_delay(policy, failed_attempts, cap);
  switch (policy.jitter) {
    case Jitter::none:
      break;
    case Jitter::full:
      return Duration(pick(0, delay, random));
    case Jitter::equal:
      return Duration(pick(delay - delay / 2, cap - delay < delay / 2 ? cap : delay + delay / 2, random));
  }
  return Duration(delay);
}

Result<void> validate(const RetryPolicy& policy) {
  if (policy.first < Duration(0)) {
    return refuse("first",
                  fmt::format("the first delay is {} us; it must not be negative", policy.first.count()));
  }
  if (policy.cap < policy.first) {
    return refuse("cap", fmt::format("the cap of {} us is below the first delay of {} us; raise the cap",
                                     policy.cap.count(), policy.first.count()));
  }
  if (!std::isfinite(policy.factor) || policy.factor < 1.0) {
    return refuse("factor",
                  fmt::format("the factor is {}; it must be 1 (fixed delay) or more", policy.factor));
  }
  if (policy.retries == RetryPolicy::kUnlimited && policy.first == Duration(0)) {
    return refuse("first", "unlimited retries without a delay would never rest; give a first delay");
  }
  if (policy.jitter > Jitter::equal) {
    return refuse("jitter", fmt::format("there is no jitter number {}; expected none, full or equal",
                                        static_cast<int>(policy.jitter)));
  }
  return {};
}

}  // namespace pawl
