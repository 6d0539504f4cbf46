// SPDX-License-Identifier: Apache-2.0
// take-up-snapshots: after a restart of the machine nothing is active any more; what should be is made so
// again.
#include <fmt/format.h>

#include "images/flows.hpp"

namespace pawl::images {
namespace {

/// What becomes of one snapshot; empty where there was nothing to do. One that is gone or broken stays as it
/// is: whoever processes or activates its image makes it anew, and the collection knows it.
Result<std::string> take_up_one(Step& step, Backend& pool, const SnapshotRow& row) {
  PAWL_TRY(const auto found, pool.find(row.volume));
  if (found && found->active) {
    // By an attempt before this one, perhaps, which could not write down where it is.
    if (found->path != row.device_path) step.sql(move_snapshot(row.volume, found->path));
    return std::string();
  }
  if (!is_sound(found, row.volume)) return fmt::format("left {}, which is gone or broken", row.volume.name);
  PAWL_TRY(const auto path, pool.activate(row.volume));
  // Somebody may have deactivated it meanwhile, who did not see that it was made active again.
  PAWL_TRY(const auto now, find_snapshot(query_of(step), row.volume.name));
  if (!now || now->volume.id != row.volume.id || !now->active) {
    PAWL_CHECK(pool.deactivate(row.volume));
    return std::string();
  }
  step.sql(move_snapshot(row.volume, path));
  return fmt::format("activated {} at {}", row.volume.name, path);
}

Outcome take_up(Workshop& shop, Step& step, const TakeUpRequest&, Deeds& deeds) {
  PAWL_TRY(auto* pool, shop.pool());
  PAWL_TRY(const auto rows, list_snapshots(query_of(step)));
  deeds.deeds.clear();
  std::optional<Error> trouble;
  for (const auto& row : rows) {
    if (!row.active) continue;
    if (step.stop().stop_requested()) return Error(Code::cancelled, "stopped before all were taken up again");
    // What somebody takes out of use stays out of it.
    if (!check_idle(step, row.image_id, {kRemove, kDeactivate})) continue;
    const auto deed = take_up_one(step, *pool, row);
    // One that fails keeps none of the others back.
    if (!deed) {
      trouble = deed.error();
      shop.log().error("snapshot was not taken up again",
                       {{"snapshot_name", row.volume.name}, {"error", deed.error().to_string()}});
    } else if (!deed->empty()) {
      deeds.deeds.push_back(*deed);
      shop.log().info("took up a snapshot", {{"snapshot_name", row.volume.name}, {"deed", *deed}});
    }
  }
  if (trouble) return *trouble;
  return Outcome::done();
}

}  // namespace

Flow<TakeUpRequest, Deeds> take_up_flow(Workshop& shop) {
  return flow<TakeUpRequest, Deeds>(std::string(kTakeUp))
      .start("take-up",
             [&shop](Step& step, const TakeUpRequest& request, Deeds& deeds) {
               return take_up(shop, step, request, deeds);
             },
             {.retry = exponential(5, Jitter::equal)})
      .end();
}

}  // namespace pawl::images
