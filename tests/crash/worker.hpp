// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pawl/error.hpp"

namespace pawl::crash {

struct WorkerOptions {
  std::string store;      // as the engine takes it
  std::string directory;  // for the file outside
  bool take_over = false;
  bool acknowledge_before_commit = false;  // the fault that the audit must find
};

/// Opens the engine on the store, says that it is ready, does what the standard input asks for and writes
/// each outcome, once it is known, to the standard output. At the end of the input it waits until every
/// timer, piece of work and message has happened, and returns.
Result<void> run_worker(const WorkerOptions& options);

}  // namespace pawl::crash
