// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pawl/error.hpp"
#include "tests/crash/audit.hpp"

namespace pawl::crash {

/// What goes wrong, again and again. All but the first need a database server.
enum class Fault {
  engine,   // the engine's process is killed
  server,   // the database server is killed with all its processes, and started again
  promote,  // the primary is killed and its synchronous standby promoted; the old primary becomes the standby
  stop,     // the owner is stopped, another process takes over, and the first one goes on
};

struct DriverOptions {
  std::int64_t kills = 20;  // how often
  std::uint64_t seed = 1;
  std::string directory;
  bool postgres = false;
  Fault fault = Fault::engine;
  bool acknowledge_before_commit = false;
};

struct Report {
  std::int64_t kills = 0;
  std::int64_t acknowledged = 0;
  Findings findings;
};

/// Starts workers on one store, strikes under load at seeded moments, and audits the store after each time
/// and, once nothing is under way any more, at the end. Ends at the first audit that finds something. On an
/// error, too, the report says how far it came. Throws where a database server cannot be run.
Result<void> run_driver(const DriverOptions& options, Report& report);

}  // namespace pawl::crash
