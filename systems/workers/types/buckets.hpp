// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Rounds measurements to buckets. An observation is stored whenever it changes, so an exact number would be
/// stored every second.
///
///     latency = settle_latency(latency, 3ms);      // Latency::within_5ms

#include <cstddef>
#include <cstdint>
#include <span>

#include "pawl/time.hpp"

namespace pawl::workers {

/// The bucket of a value: the first whose bound is not below it, or one past the last. Keeps the present
/// bucket while the value is within twice its bounds (hysteresis).
std::size_t settle(std::size_t present, double value, std::span<const double> bounds);

/// The bucket of a first value.
std::size_t first_step(double value, std::span<const double> bounds);

enum class Latency : std::uint8_t {
  unknown,
  within_1ms,
  within_5ms,
  within_20ms,
  within_100ms,
  within_500ms,
  longer,
};
Latency settle_latency(Latency present, Duration measured);

/// Messages per second.
enum class Rate : std::uint8_t { none, below_1, below_10, below_100, below_1000, more };
Rate settle_rate(Rate present, double per_second);

}  // namespace pawl::workers
