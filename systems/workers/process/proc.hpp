// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reads /proc, for the manager and the shim. Functions without state; thread-safe.

#include <dirent.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "workers/process/record.hpp"

namespace pawl::workers {

/// /proc/<pid>/stat. Times are in ticks; `waited` is of its reaped children.
struct ProcStat {
  int pid = 0;
  char state = '?';
  int parent = 0;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  std::uint64_t waited_user = 0;
  std::uint64_t waited_system = 0;
  std::uint64_t start = 0;
  std::uint64_t resident_pages = 0;

  /// A zombie.
  bool dead() const { return state == 'Z' || state == 'X'; }
};

/// False if there is no such process.
bool read_stat(int pid, ProcStat& stat);

/// Whether exactly this process is alive.
bool lives(const ProcessKey& key);

/// Calls `visit(pid)` for every process in /proc. False if it cannot be read.
template <class Visit>
bool each_process(Visit visit) {
  DIR* const directory = ::opendir("/proc");
  if (directory == nullptr) return false;
  while (const dirent* entry = ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe): a stream of its own
    int pid = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    const auto [parsed, error] = std::from_chars(entry->d_name, end, pid);
    if (error == std::errc() && parsed == end) visit(pid);
  }
  ::closedir(directory);
  return true;
}

/// Kills every process that inherited the mark of a shim, until none is left. False if one does not end
/// within the timeout.
bool kill_marked(std::string_view mark, int timeout_ms);

}  // namespace pawl::workers
