// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How full a pool is, reported early enough to act on it.
///
///     if (alarm(usage, 0.95) == Alarm::full) …
///
/// Pure functions.

#include <cstdint>
#include <string>

#include "images/backend/backend.hpp"

namespace pawl::images {

enum class Alarm : std::uint8_t {
  none,
  filling,  ///< from 80 % on, of the data or of the metadata
  full,     ///< above the part that may be used, or the pool says so itself: nothing new is begun
};

inline constexpr double kFilling = 0.8;

/// `full` is the part of the data, and of the metadata, above which nothing new is begun.
Alarm alarm(const PoolUsage& usage, double full);

/// "81 % of the data and 12 % of the metadata are used", for people.
std::string level_text(const PoolUsage& usage);

}  // namespace pawl::images
