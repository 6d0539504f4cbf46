// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::crash_flow {

struct DriverOptions {
  int kills = 20;
  std::uint64_t seed = 1;
  std::string directory{};
};

struct Report {
  int kills = 0;
  std::int64_t acknowledged = 0;
  std::int64_t lost = 0;     // acknowledged, but not ended, or without one of its steps
  std::int64_t doubled = 0;  // steps that were done under two request ids
  std::vector<std::string> problems;
};

/// Starts a worker, keeps it busy, kills it; again and again. At the end everything is let run out and
/// compared with the file outside.
Result<void> run_driver(const DriverOptions& options, Report& report);

}  // namespace pawl::crash_flow
