// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Starts a shim and receives its report.

#include <cstdint>
#include <string>

#include "workers/process/os.hpp"
#include "workers/process/process_directory.hpp"
#include "workers/process/protocol.hpp"

namespace pawl::workers {

struct Launch {
  std::string shim_path{};
  std::string id{};  ///< escaped
  std::uint64_t generation = 0;
  std::string spec{};  ///< by `encode_for_shim`
};

/// Returns `started`, `failed`, `held` or `used`; the shim is detached then. Errors: `process_failed` if it
/// does not report in time or reports `broken`, `cancelled`.
Result<shim::Report> launch(const Launch& what, const ProcessDirectory& place, const Waiter& waiter,
                            Deadline deadline);

}  // namespace pawl::workers
