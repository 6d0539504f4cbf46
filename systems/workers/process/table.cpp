// SPDX-License-Identifier: Apache-2.0
#include "workers/process/table.hpp"

#include <unistd.h>

#include <algorithm>

namespace pawl::workers {
namespace {

constexpr auto kFresh = std::chrono::seconds(1);

struct Sum {
  std::uint64_t ticks = 0;
  std::uint64_t pages = 0;
  std::size_t processes = 0;

  void add(const ProcStat& stat) {
    ticks += stat.user + stat.system + stat.waited_user + stat.waited_system;
    if (stat.dead()) return;
    pages += stat.resident_pages;
    ++processes;
  }
};

}  // namespace

void ProcessTable::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (!by_parent_.empty() && now - read_at_ < kFresh) return;
  by_parent_.clear();
  each_process([&](int pid) {
    ProcStat stat;
    if (read_stat(pid, stat)) by_parent_.push_back(stat);
  });
  std::ranges::sort(by_parent_, {}, &ProcStat::parent);
  read_at_ = now;
}

Usage ProcessTable::usage(const ProcessKey& shim, const ProcessKey& command) {
  Sum sum;
  ProcStat stat;
  // Usage of children that the shim has reaped.
  if (read_stat(shim.pid, stat) && stat.start == shim.start)
    sum.ticks += stat.waited_user + stat.waited_system;
  if (read_stat(command.pid, stat) && stat.start == command.start) sum.add(stat);
  {
    const std::scoped_lock lock(mutex_);
    refresh();
    std::vector<int> parents{shim.pid};
    // Children older than the shim belong to an earlier process with its pid. The bound stops cycles.
    for (std::size_t i = 0; i < parents.size() && i <= by_parent_.size(); ++i) {
      for (const auto& child : std::ranges::equal_range(by_parent_, parents[i], {}, &ProcStat::parent)) {
        if (child.start < shim.start) continue;
        parents.push_back(child.pid);
        if (child.pid != command.pid) sum.add(child);
      }
    }
  }
  static const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {static_cast<double>(sum.ticks) / per_second, sum.pages * page, sum.processes};
}

}  // namespace pawl::workers
