// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pawl/error.hpp"

namespace pawl::crash_flow {

/// Runs flows in a directory until its standard input ends. A line "start ID" starts a run; "acked ID" is
/// written when that is durable, "ended ID STATE" when the run has ended. Each step appends a line
/// "ID STEP ATTEMPT REQUEST-ID" to the file `outside`, in one write.
Result<void> run_worker(const std::string& directory);

}  // namespace pawl::crash_flow
