// SPDX-License-Identifier: Apache-2.0
#include "workers/orphan_cleanup.hpp"

#include "workers/types/restart_record.hpp"

namespace pawl::workers {

void OrphanCleanup::run(const std::vector<std::string>& workers) {
  const auto ids = manager_.list();
  if (!ids) return;
  const std::set<std::string, std::less<>> known(workers.begin(), workers.end());
  std::set<std::string, std::less<>> orphans;
  for (const auto& id : *ids) {
    if (known.contains(id) || protected_.contains(id)) continue;
    orphans.insert(id);
    if (!orphans_.contains(id)) continue;
    auto removed = manager_.stop(id, Duration::zero());
    if (removed) removed = manager_.forget(id);
    if (removed) RestartRecordFile(records_, id).remove();
    if (!removed) {
      log_.warn("cannot end the process of a removed worker",
                {{"worker", id}, {"error", removed.error().message()}});
    }
  }
  orphans_ = std::move(orphans);
}

}  // namespace pawl::workers
