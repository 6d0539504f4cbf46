// SPDX-License-Identifier: Apache-2.0
#include "workers/drain_base.hpp"

#include <algorithm>

#include "workers/types/process.hpp"

namespace pawl::workers {

Duration drain_base(const std::vector<WorkerView>& tree, Duration set, std::uint32_t actions) {
  Duration longest{};
  std::int64_t processes = 0;
  for (const auto& worker : tree) {
    if (worker.identity.type != ProcessWorker::kType || worker.phase == Phase::stopped) continue;
    const auto desired = decode<ProcessDesired>(worker.desired.text);
    if (!desired) continue;
    ++processes;
    longest = std::max(longest, desired->stop_grace);
  }
  const auto at_once = std::max<std::int64_t>(actions, 1);
  return set + longest * ((processes + at_once - 1) / at_once);
}

}  // namespace pawl::workers
