// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which processes there are, and what they use. Reading all of /proc is what costs, so that all workers
/// share one look at it, at most a second old.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "workers/process/proc.hpp"
#include "workers/process/record.hpp"

namespace pawl::workers {

struct Usage {
  double cpu_seconds = 0;
  std::uint64_t memory_bytes = 0;
  std::size_t processes = 0;
};

/// Thread-safe.
class ProcessTable {
 public:
  /// Of the command of a shim, as it is now, and of what it started, as it was within the last second.
  Usage usage(const ProcessKey& shim, const ProcessKey& command);

 private:
  void refresh();

  std::mutex mutex_;
  std::chrono::steady_clock::time_point read_at_{};
  std::vector<ProcStat> by_parent_;  ///< sorted by the parent
};

}  // namespace pawl::workers
