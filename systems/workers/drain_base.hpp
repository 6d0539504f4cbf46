// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "pawl/supervisor.hpp"
#include "pawl/time.hpp"

namespace pawl::workers {

/// How long each level of the tree is given to come to rest: what was set, and the time that its processes
/// may take to end, of which so many are stopped at the same time.
Duration drain_base(const std::vector<WorkerView>& tree, Duration set, std::uint32_t actions);

}  // namespace pawl::workers
