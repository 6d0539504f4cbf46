// SPDX-License-Identifier: Apache-2.0
// deactivate-image and remove-image: the way back.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "images/flows.hpp"
#include "images/names.hpp"

namespace pawl::images {
namespace {

/// An image that another run works on is not removed. The run is retried until that has ended, or fails.
Result<void> check_not_made(Step& step, const std::string& image_id) {
  return check_idle(step, image_id, {kProcess, kDownload, kUnpack, kActivate});
}

/// All volumes that any table knows of the image, snapshots before what they were made of.
Result<std::vector<VolumeRow>> all_volumes(Step& step, const std::string& image_id) {
  const auto query = query_of(step);
  PAWL_TRY(auto rows, list_volumes(query, image_id));
  std::set<std::uint32_t> known;
  for (const auto& row : rows) known.insert(row.volume.id);
  PAWL_TRY(const auto unpacked, find_unpacked(query, image_id));
  if (unpacked && !known.contains(unpacked->volume.id)) {
    rows.push_back({.volume = unpacked->volume, .kind = VolumeKind::image, .image_id = image_id});
  }
  PAWL_TRY(const auto snapshots, list_snapshots(query, image_id));
  for (const auto& row : snapshots) {
    if (known.contains(row.volume.id)) continue;
    rows.push_back({.volume = row.volume, .kind = VolumeKind::snapshot, .image_id = image_id});
  }
  std::ranges::sort(
      rows, {}, [](const VolumeRow& row) { return std::pair(row.kind == VolumeKind::image, row.volume.id); });
  return rows;
}

Result<std::vector<SnapshotRow>> chosen_snapshots(Step& step, const DeactivateRequest& request) {
  PAWL_CHECK(check_image_id(request.image_id));
  PAWL_TRY(auto rows, list_snapshots(query_of(step), request.image_id));
  if (!request.snapshot_name.empty()) {
    std::erase_if(rows, [&](const SnapshotRow& row) { return row.volume.name != request.snapshot_name; });
    if (rows.empty()) {
      return fail(Code::invalid_argument, fmt::format("image \"{}\" has no snapshot \"{}\"", request.image_id,
                                                      request.snapshot_name));
    }
  }
  return rows;
}

Outcome deactivate(ImageServices& services, Step& step, const DeactivateRequest& request,
                   ActionReport& report) {
  if (const auto idle = check_not_made(step, request.image_id); !idle) return idle.error();
  const auto rows = chosen_snapshots(step, request);
  if (!rows) return abort_or_retry(rows.error());
  for (const auto& row : *rows) {
    PAWL_TRY(auto* pool, services.pool(row.volume.pool));
    if (const auto done = pool->deactivate(row.volume);
        !done && done.error().code() != Code::volume_missing) {
      return done.error();
    }
    step.sql(deactivate_snapshot(row.volume.name, step.now()));
    report.actions.push_back(fmt::format("deactivated {}", row.volume.name));
  }
  step.sql(follow_snapshots(request.image_id, step.now()));
  return Outcome::done();
}

Outcome remove_volumes(ImageServices& services, Step& step, const RemoveRequest& request,
                       ActionReport& report) {
  if (const auto checked = check_image_id(request.image_id); !checked) return abort_or_retry(checked.error());
  if (const auto idle = check_not_made(step, request.image_id); !idle) return idle.error();
  PAWL_TRY(const auto rows, all_volumes(step, request.image_id));
  for (const auto& row : rows) {
    if (row.state == VolumeState::faulty) continue;
    PAWL_TRY(auto* pool, services.pool(row.volume.pool));
    PAWL_TRY(const bool removed, remove_volume(*pool, row.volume));
    if (removed) report.actions.push_back(fmt::format("removed {}", row.volume.name));
    step.sql(forget_volume(row.volume.id));
    step.sql(row.kind == VolumeKind::snapshot ? forget_snapshot(row.volume)
                                              : forget_unpacked(request.image_id, row.volume.id));
  }
  step.sql(follow_snapshots(request.image_id, step.now()));
  return Outcome::done();
}

Outcome remove_archive(ImageServices& services, Step& step, const RemoveRequest& request,
                       ActionReport& report) {
  // A download may have begun since the volumes were removed.
  if (const auto idle = check_not_made(step, request.image_id); !idle) return idle.error();
  const auto path = services.archive_of(request.image_id);
  PAWL_CHECK(forget_part(path));
  std::error_code failure;
  if (std::filesystem::remove(path, failure)) report.actions.push_back(fmt::format("removed {}", path));
  if (failure) return Error(Code::store_io, fmt::format("{} cannot be removed: {}", path, failure.message()));
  step.sql(forget_image(request.image_id));
  return Outcome::done();
}

}  // namespace

Flow<DeactivateRequest, ActionReport> deactivate_flow(ImageServices& services) {
  return flow<DeactivateRequest, ActionReport>(std::string(kDeactivate))
      .start("deactivate",
             [&services](Step& step, const DeactivateRequest& request, ActionReport& report) {
               return deactivate(services, step, request, report);
             },
             {.retry = fixed(3)})
      .end();
}

Flow<RemoveRequest, ActionReport> remove_flow(ImageServices& services) {
  return flow<RemoveRequest, ActionReport>(std::string(kRemove))
      .start("remove-volumes",
             [&services](Step& step, const RemoveRequest& request, ActionReport& report) {
               return remove_volumes(services, step, request, report);
             },
             {.retry = fixed(3)})
      .to("remove-archive",
          [&services](Step& step, const RemoveRequest& request, ActionReport& report) {
            return remove_archive(services, step, request, report);
          },
          {.retry = fixed(3)})
      .end();
}

}  // namespace pawl::images
