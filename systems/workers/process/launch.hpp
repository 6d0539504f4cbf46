// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Starting a shim, and hearing from it how that went.

#include <cstdint>
#include <string>

#include "workers/process/os.hpp"
#include "workers/process/place.hpp"
#include "workers/process/protocol.hpp"

namespace pawl::workers {

struct Launch {
  std::string shim_path{};
  std::string id{};  ///< escaped
  std::uint64_t generation = 0;
  std::string spec{};  ///< by `encode_for_shim`
};

/// `started`, `failed`, `held` or `used`; the shim is nobody's child then. Errors: `process_failed` where it
/// does not come up within its time or could not do its work, `cancelled`.
Result<shim::Report> launch(const Launch& what, const Place& place, const Waiter& waiter, Deadline deadline);

}  // namespace pawl::workers
