// SPDX-License-Identifier: Apache-2.0
#include "workers/strays.hpp"

#include "workers/types/process_notes.hpp"

namespace pawl::workers {

void Strays::look(const std::vector<std::string>& workers) {
  const auto ids = keeper_.list();
  if (!ids) return;
  const std::set<std::string, std::less<>> known(workers.begin(), workers.end());
  std::set<std::string, std::less<>> strays;
  for (const auto& id : *ids) {
    if (known.contains(id) || left_alone_.contains(id)) continue;
    strays.insert(id);
    if (!seen_.contains(id)) continue;
    auto cleared = keeper_.stop(id, Duration::zero());
    if (cleared) cleared = keeper_.forget(id);
    if (cleared) ProcessNotes(notes_, id).forget();
    if (!cleared) {
      log_.warn("a process of nobody could not be cleared away",
                {{"worker", id}, {"error", cleared.error().message()}});
    }
  }
  seen_ = std::move(strays);
}

}  // namespace pawl::workers
