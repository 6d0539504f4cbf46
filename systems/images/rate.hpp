// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How far something is, how fast it goes and when it will be done, for people.

#include <cstdint>
#include <string>

#include "pawl/time.hpp"

namespace pawl::images {

/// Bytes that were done, of which those up to `begin` were there before.
struct Pace {
  std::uint64_t begin = 0;
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< 0: unknown
  Duration taken{};
};

/// "12.0 of 48.0 MB, 6.0 MB/s, 6 s left"; without a rate as long as there is none to speak of.
std::string pace_text(const Pace& pace);

/// From 0 to 1; 0 where the total is unknown.
double fraction_of(const Pace& pace);

}  // namespace pawl::images
