// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pawl/error.hpp"
#include "tests/crash/audit.hpp"

namespace pawl::crash {

struct DriverOptions {
  std::int64_t kills = 20;
  std::uint64_t seed = 1;
  std::string directory;
  bool acknowledge_before_commit = false;
};

struct Report {
  std::int64_t kills = 0;
  std::int64_t acknowledged = 0;
  Findings findings;
};

/// Starts workers on one store, kills them under load at seeded moments, and audits the store after each kill
/// and, once nothing is under way any more, at the end. Ends at the first audit that finds something. On an
/// error, too, the report says how far it came.
Result<void> run_driver(const DriverOptions& options, Report& report);

}  // namespace pawl::crash
