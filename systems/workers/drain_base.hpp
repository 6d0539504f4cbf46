// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pawl/supervisor.hpp"
#include "pawl/time.hpp"

namespace pawl::workers {

/// The time that each level of the tree gets to stop: the configured base plus the time that its processes
/// may need to end. `actions` processes are stopped concurrently.
Duration drain_base(const std::vector<WorkerView>& tree, Duration set, std::uint32_t actions);

}  // namespace pawl::workers
