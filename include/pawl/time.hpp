// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The three kinds of time, each a std::chrono type in microseconds, so that they cannot be mixed up.
///
///     pawl::Time stored = runtime.now();               // wall clock: what is written, may jump
///     pawl::Instant begun = runtime.instant();         // monotonic: what waits and timeouts are measured on
///     pawl::Duration taken = runtime.instant() - begun;

#include <chrono>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl {

using Duration = std::chrono::microseconds;

/// Wall-clock time, UTC, for storage and display.
using Time = std::chrono::sys_time<Duration>;

/// A point on the monotonic clock of one process; meaningless in another.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// "2026-11-15T21:40:00.000000Z", always six digits, so that text order is time order. Times outside the
/// years 0001 to 9999 have no such text and are shown as the nearest time that has one.
std::string to_string(Time time);

/// Parses what `to_string` writes, and the RFC 3339 forms with fewer or more digits (0 to 9; what is finer
/// than a microsecond is cut off) or a numeric offset. Strict: upper-case T and Z, no blanks, no leap second,
/// years 0001 to 9999. Error: `invalid_argument` with the field `text`.
Result<Time> parse_time(std::string_view text);

/// "90s", "0.25s": seconds, exact to the microsecond.
std::string to_string(Duration duration);

/// A number with one of the units us, ms, s, m, h, d: "1.5s", "20m", "-3ms". Finer than a microsecond is
/// refused.
Result<Duration> parse_duration(std::string_view text);

}  // namespace pawl
