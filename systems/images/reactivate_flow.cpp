// SPDX-License-Identifier: Apache-2.0
// reactivate-snapshots: after a restart of the machine nothing is active any more; what should be is made so
// again.
#include <fmt/format.h>

#include "images/flows.hpp"

namespace pawl::images {
namespace {

/// What becomes of one snapshot; empty where there was nothing to do. One that is gone or broken stays as it
/// is: processing or activating its image makes it again, and the collection knows it.
Result<std::string> reactivate_one(Step& step, Backend& pool, const SnapshotRow& row) {
  PAWL_TRY(const auto found, pool.find(row.volume));
  if (found && found->active) {
    // By an attempt before this one, perhaps, which could not write down where it is.
    if (found->path != row.device_path) step.sql(move_snapshot(row.volume, found->path));
    return std::string();
  }
  if (!is_sound(found, row.volume)) return fmt::format("left {}, which is gone or broken", row.volume.name);
  PAWL_TRY(const auto path, pool.activate(row.volume));
  // A deactivation that ran meanwhile did not see that it was made active again.
  PAWL_TRY(const auto now, find_snapshot(query_of(step), row.volume.name));
  if (!now || now->volume.id != row.volume.id || !now->active) {
    PAWL_CHECK(pool.deactivate(row.volume));
    return std::string();
  }
  step.sql(move_snapshot(row.volume, path));
  return fmt::format("activated {} at {}", row.volume.name, path);
}

Outcome reactivate(ImageServices& services, Step& step, const ReactivateRequest& request,
                   ActionReport& report) {
  PAWL_TRY(auto* pool, services.pool(request.pool_name));
  PAWL_TRY(const auto rows, list_snapshots(query_of(step)));
  report.actions.clear();
  std::optional<Error> trouble;
  for (const auto& row : rows) {
    if (!row.active || row.volume.pool != request.pool_name) continue;
    if (step.stop().stop_requested())
      return Error(Code::cancelled, "stopped before all were activated again");
    // A snapshot that is being deactivated or removed is left alone.
    if (!check_idle(step, row.image_id, {kRemove, kDeactivate})) continue;
    const auto action = reactivate_one(step, *pool, row);
    // One that fails keeps none of the others back.
    if (!action) {
      trouble = action.error();
      services.log().error("snapshot was not activated again",
                           {{"snapshot_name", row.volume.name}, {"error", action.error().to_string()}});
    } else if (!action->empty()) {
      report.actions.push_back(*action);
      services.log().info("activated a snapshot again",
                          {{"snapshot_name", row.volume.name}, {"action", *action}});
    }
  }
  if (trouble) return *trouble;
  return Outcome::done();
}

}  // namespace

Flow<ReactivateRequest, ActionReport> reactivate_flow(ImageServices& services) {
  return flow<ReactivateRequest, ActionReport>(std::string(kReactivate))
      .start("reactivate",
             [&services](Step& step, const ReactivateRequest& request, ActionReport& report) {
               return reactivate(services, step, request, report);
             },
             {.retry = exponential(5, Jitter::equal)})
      .end();
}

}  // namespace pawl::images
