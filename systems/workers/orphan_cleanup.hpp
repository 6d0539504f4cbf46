// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ends processes whose workers were removed.
///
///     OrphanCleanup cleanup(manager, records, log, attached.unknown);
///     cleanup.run(supervisor.paths());              // periodically

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pawl/log.hpp"
#include "workers/process/manager.hpp"

namespace pawl::workers {

/// Externally synchronised.
class OrphanCleanup {
 public:
  /// `protected_ids` are workers that this program does not know; their processes are not touched. `records`
  /// is the directory of the restart records. The manager must outlive this object.
  OrphanCleanup(const ProcessManager& manager, std::string records, Logger log,
                const std::vector<std::string>& protected_ids)
      : manager_(manager),
        records_(std::move(records)),
        log_(std::move(log)),
        protected_(protected_ids.begin(), protected_ids.end()) {}

  /// Ends each process that has no worker now and had none at the previous call: within one call its worker
  /// may be about to appear.
  void run(const std::vector<std::string>& workers);

 private:
  const ProcessManager& manager_;
  std::string records_;
  Logger log_;
  std::set<std::string, std::less<>> protected_;
  std::set<std::string, std::less<>> orphans_{};  ///< at the previous call
};

}  // namespace pawl::workers
