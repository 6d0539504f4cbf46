// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The processes of the machine and their resource usage. Reading /proc is expensive, so all workers share
/// one snapshot, at most a second old.

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
  /// The usage of the command now, and of its descendants within the last second.
  Usage usage(const ProcessKey& shim, const ProcessKey& command);

 private:
  void refresh();

  std::mutex mutex_;
  std::chrono::steady_clock::time_point read_at_{};
  std::vector<ProcStat> by_parent_;  ///< sorted by the parent
};

}  // namespace pawl::workers
