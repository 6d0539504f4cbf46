// SPDX-License-Identifier: Apache-2.0
#include "images/garbage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "images/names.hpp"
#include "pawl/names.hpp"

namespace pawl::images {
namespace {

/// Everything that exists, and the rows that refer to it. A volume is in the tables before it is in
/// the pool, and is marked as made in the commit that says what it is.
struct Inventory {
  std::map<std::string, std::map<std::uint32_t, FoundVolume>> pools;  // those that are looked at
  std::vector<VolumeRow> volumes;
  std::vector<UnpackedRow> unpacked;
  std::vector<SnapshotRow> snapshots;
  std::vector<ImageRow> images;
  std::vector<std::string> files;
};

Result<Inventory> read_inventory(ImageServices& services, const AttachedPools& pools, const Query& query) {
  Inventory inventory;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(services.archives(), failure)) {
    inventory.files.push_back(entry.path().filename().string());
  }
  if (failure) {
    return fail(Code::store_io, fmt::format("{} cannot be read: {}", services.archives(), failure.message()));
  }
  std::ranges::sort(inventory.files);
  std::optional<Error> trouble;
  for (const auto& [name, pool] : pools) {
    auto found = pool->list();
    // One that fails keeps none of the others back.
    if (!found) {
      services.log().warn("pool was not looked at for garbage",
                          {{"pool", services.pool_title(name)}, {"error", found.error().to_string()}});
      trouble = found.error();
      continue;
    }
    auto& volumes = inventory.pools[name];
    for (auto& volume : *found) volumes.emplace(volume.id, std::move(volume));
  }
  if (inventory.pools.empty() && trouble) return fail(*trouble);
  PAWL_TRY(inventory.volumes, list_volumes(query));
  PAWL_TRY(inventory.unpacked, list_unpacked(query));
  PAWL_TRY(inventory.snapshots, list_snapshots(query));
  PAWL_TRY(inventory.images, list_images(query));
  return inventory;
}

/// The same answer for an image during one look.
class Busy {
 public:
  explicit Busy(const IsBusy& ask) : ask_(ask) {}
  Result<bool> operator()(const std::string& image_id) {
    const auto known = checksums_.find(image_id);
    if (known != checksums_.end()) return known->second;
    PAWL_TRY(const bool busy, ask_(image_id));
    checksums_.emplace(image_id, busy);
    return busy;
  }

 private:
  const IsBusy& ask_;
  std::map<std::string, bool> checksums_;
};

/// What a pool that is looked at has under the number of the volume; nullptr if nothing.
const FoundVolume* find_in(const Inventory& inventory, const Volume& volume) {
  const auto& pool = inventory.pools.at(volume.pool);
  const auto found = pool.find(volume.id);
  return found == pool.end() ? nullptr : &found->second;
}

bool is_in(const Inventory& inventory, const Volume& volume) {
  const auto* found = find_in(inventory, volume);
  return found != nullptr && is_volume(*found, volume);
}

/// What the tables say that an image or a snapshot has.
std::vector<VolumeRow> referenced_volumes(const Inventory& inventory) {
  std::vector<VolumeRow> rows;
  rows.reserve(inventory.unpacked.size() + inventory.snapshots.size());
  for (const auto& row : inventory.unpacked) {
    rows.push_back({row.volume, VolumeKind::image, row.image_id, VolumeState::made});
  }
  for (const auto& row : inventory.snapshots) {
    rows.push_back({row.volume, VolumeKind::snapshot, row.image_id, VolumeState::made});
  }
  return rows;
}

/// Whether the pool has exactly this one, by what is written in it.
bool is_surely_in(const Inventory& inventory, const Volume& volume) {
  const auto* found = find_in(inventory, volume);
  return found != nullptr && found->marker == volume.marker;
}

GarbageKind kind_of_loss(VolumeKind kind) {
  return kind == VolumeKind::image ? GarbageKind::lost_image : GarbageKind::lost_snapshot;
}

Result<void> check_volumes(const Inventory& inventory, Busy& busy, std::vector<Garbage>& garbage) {
  const auto references = referenced_volumes(inventory);
  std::set<std::uint32_t> referenced;
  for (const auto& row : references) referenced.insert(row.volume.id);
  // Another pool may have something else under the same number.
  std::set<std::pair<std::string, std::uint32_t>> known;
  for (const auto& row : inventory.volumes) {
    known.emplace(row.volume.pool, row.volume.id);
    if (!inventory.pools.contains(row.volume.pool)) continue;
    if (row.state == VolumeState::faulty) continue;
    PAWL_TRY(const bool is_busy, busy(row.image_id));
    if (is_busy) continue;
    Garbage found{
        .volume = row.volume.id, .image_id = row.image_id, .name = row.volume.name, .pool = row.volume.pool};
    if (!referenced.contains(row.volume.id)) {
      found.kind = row.state == VolumeState::intended ? GarbageKind::abandoned_volume
                                                      : GarbageKind::unreferenced_volume;
    } else if (!is_in(inventory, row.volume)) {
      found.kind = kind_of_loss(row.kind);
    } else {
      continue;
    }
    garbage.push_back(std::move(found));
  }
  // A row may have been removed by hand, so what it named is not known under its number any more.
  for (const auto& row : references) {
    if (known.contains({row.volume.pool, row.volume.id})) continue;
    if (!inventory.pools.contains(row.volume.pool)) continue;
    const bool there = is_surely_in(inventory, row.volume);
    if (there) known.emplace(row.volume.pool, row.volume.id);
    PAWL_TRY(const bool is_busy, busy(row.image_id));
    if (is_busy) continue;
    garbage.push_back({there ? GarbageKind::unlisted_volume : kind_of_loss(row.kind), row.volume.id,
                       row.image_id, row.volume.name, row.volume.pool});
  }
  for (const auto& [name, pool] : inventory.pools) {
    for (const auto& [id, volume] : pool) {
      if (known.contains({name, id})) continue;
      garbage.push_back({GarbageKind::unknown_volume, id, {}, volume.name, name});
    }
  }
  return {};
}

/// Images that the tables know only by what was made of them.
std::set<std::string> unlisted_images(const Inventory& inventory) {
  std::set<std::string> images;
  for (const auto& row : referenced_volumes(inventory)) images.insert(row.image_id);
  for (const auto& row : inventory.images) images.erase(row.image_id);
  return images;
}

Result<void> check_images(const Inventory& inventory, Busy& busy, std::vector<Garbage>& garbage) {
  for (const auto& image : unlisted_images(inventory)) {
    PAWL_TRY(const bool is_busy, busy(image));
    if (is_busy) continue;
    garbage.push_back({.kind = GarbageKind::unlisted_image, .image_id = image, .name = image});
  }
  return {};
}

Result<void> check_files(const ImageServices& services, const Inventory& inventory, Busy& busy,
                         std::vector<Garbage>& garbage) {
  std::set<std::string> complete;
  for (const auto& row : inventory.images) {
    if (row.download_status == DownloadStatus::completed) complete.insert(row.image_id + ".tar");
  }
  const auto unlisted = unlisted_images(inventory);
  for (const auto& file : inventory.files) {
    const auto image = file.substr(0, file.find('.'));
    // The archive of an image that gets its row back belongs to it again.
    if (complete.contains(file) || unlisted.contains(image)) continue;
    PAWL_TRY(const bool is_busy, busy(image));
    if (is_busy) continue;
    garbage.push_back({.kind = GarbageKind::orphan_file,
                       .image_id = image,
                       .name = fmt::format("{}/{}", services.archives(), file)});
  }
  return {};
}

/// A download may have begun since the file was found.
Result<std::string> remove_file(ImageServices& services, Step& step, const Garbage& found) {
  const auto get = [&](std::string_view flow, std::string_view id) { return step.get(flow, id); };
  PAWL_TRY(const bool is_busy, is_worked_on(found.image_id, get));
  PAWL_TRY(const auto row, find_image(query_of(step), found.image_id));
  const bool wanted = row && row->download_status == DownloadStatus::completed &&
                      found.name == services.archive_of(found.image_id);
  if (is_busy || wanted) return fmt::format("left {}, which is in use now", found.name);
  std::error_code failure;
  std::filesystem::remove(found.name, failure);
  if (failure)
    return fail(Code::store_io, fmt::format("{} cannot be removed: {}", found.name, failure.message()));
  return fmt::format("removed the file {}", found.name);
}

/// The row that a volume should have, by the image or the snapshot that has it.
Result<std::string> restore_volume_row(Step& step, const Garbage& found) {
  const auto query = query_of(step);
  PAWL_TRY(const auto image, find_unpacked(query, found.image_id));
  PAWL_TRY(const auto snapshot, find_snapshot(query, found.name));
  VolumeRow row{.image_id = found.image_id, .state = VolumeState::made};
  if (image && image->volume.id == found.volume) {
    row.volume = image->volume;
  } else if (snapshot && snapshot->volume.id == found.volume) {
    row.volume = snapshot->volume;
    row.kind = VolumeKind::snapshot;
  } else {
    return fmt::format("left {}, which no row refers to any more", found.name);
  }
  step.sql(add_volume(row, step.now()));
  return fmt::format("listed {} again", found.name);
}

/// The row of an image, by its last download. Error: `unknown_instance` if there is no record of it.
Result<std::string> restore_image_row(ImageServices& services, Step& step, const Garbage& found) {
  const auto unknown = [&] {
    return fail(Code::unknown_instance,
                fmt::format("there is no record of its object; process it again as image \"{}\", or "
                            "remove it",
                            found.image_id));
  };
  const auto run = step.get(kDownload, found.image_id);
  if (!run && run.error().code() == Code::unknown_instance) return unknown();
  if (!run) return fail(run.error());
  const auto asked = decode<DownloadRequest>(run->request);
  const auto got = decode<DownloadResponse>(run->response);
  if (!asked || !got || got->image_id != found.image_id || got->checksum.empty()) return unknown();
  PAWL_TRY(const auto object, services.object(asked->bucket, asked->s3_key));
  PAWL_TRY(const auto taken, find_object(query_of(step), object.bucket, asked->s3_key));
  if (taken) return unknown();
  // The next run that needs the archive checks that it is there and intact.
  step.sql(save_image({.image_id = found.image_id,
                       .bucket = object.bucket,
                       .s3_key = asked->s3_key,
                       .local_path = got->local_path,
                       .checksum = got->checksum,
                       .etag = got->etag,
                       .size_bytes = got->size_bytes,
                       .download_status = DownloadStatus::completed,
                       .downloaded_at = to_string(step.now())},
                      step.now()));
  step.sql(follow_snapshots(found.image_id, step.now()));
  return fmt::format("wrote the row of image {} again", found.image_id);
}

/// Removes or repairs one finding. What is in use stays, and is found again the next time.
Result<std::string> remove_garbage(ImageServices& services, Step& step, const Garbage& found) {
  switch (found.kind) {
    case GarbageKind::orphan_file:
      return remove_file(services, step, found);
    case GarbageKind::unlisted_volume:
      return restore_volume_row(step, found);
    case GarbageKind::unlisted_image:
      return restore_image_row(services, step, found);
    case GarbageKind::lost_image:
    case GarbageKind::lost_snapshot:
      // By the volume, so that a newer row of the same image or name stays.
      step.sql(found.kind == GarbageKind::lost_image
                   ? forget_unpacked(found.image_id, found.volume)
                   : forget_snapshot({.id = found.volume, .name = found.name}));
      step.sql(forget_volume(found.volume));
      step.sql(follow_snapshots(found.image_id, step.now()));
      return fmt::format("forgot {}, which is not in the pool", found.name);
    case GarbageKind::unknown_volume:
    case GarbageKind::abandoned_volume:
    case GarbageKind::unreferenced_volume:
      break;
  }
  PAWL_TRY(auto* pool, services.pool(found.pool));
  PAWL_CHECK(pool->remove(found.volume));
  if (found.kind != GarbageKind::unknown_volume) step.sql(forget_volume(found.volume));
  return fmt::format("removed volume {} {}", found.volume, found.name);
}

/// Attaches those that can be. One that cannot be keeps none of the others back. Error: that of the default
/// one if none can be.
Result<AttachedPools> pools_to_collect(ImageServices& services, ActionReport& report) {
  for (const auto& name : services.pools()) {
    const auto pool = services.pool(name);
    if (pool) continue;
    report.actions.push_back(
        fmt::format("left the pool {}: {}", services.pool_title(name), pool.error().to_string()));
  }
  return attached_pools(services);
}

Outcome collect(ImageServices& services, Step& step, const CollectRequest&, ActionReport& report) {
  const auto get = [&](std::string_view flow, std::string_view id) { return step.get(flow, id); };
  report.actions.clear();
  PAWL_TRY(const auto pools, pools_to_collect(services, report));
  PAWL_TRY(const auto garbage, find_garbage(services, pools, query_of(step),
                                            [&](std::string_view id) { return is_worked_on(id, get); }));
  std::size_t done = 0;
  for (const auto& found : garbage) {
    if (step.stop().stop_requested()) return Error(Code::cancelled, "stopped before everything was removed");
    step.progress(static_cast<double>(done++) / static_cast<double>(garbage.size()), found.name);
    const auto action = remove_garbage(services, step, found);
    report.actions.push_back(action ? *action
                                    : fmt::format("left {}: {}", found.name, action.error().to_string()));
    services.log().info("collected", {{"kind", enum_name(found.kind)}, {"action", report.actions.back()}});
  }
  return Outcome::done();
}

Result<std::vector<Garbage>> find_garbage_once(ImageServices& services, const AttachedPools& pools,
                                               const Query& query, const IsBusy& is_busy) {
  PAWL_TRY(const auto inventory, read_inventory(services, pools, query));
  Busy busy(is_busy);
  std::vector<Garbage> garbage;
  PAWL_CHECK(check_volumes(inventory, busy, garbage));
  PAWL_CHECK(check_images(inventory, busy, garbage));
  PAWL_CHECK(check_files(services, inventory, busy, garbage));
  return garbage;
}

}  // namespace

Result<AttachedPools> attached_pools(const ImageServices& services) {
  AttachedPools pools;
  for (const auto& name : services.pools()) {
    if (const auto pool = services.attached_pool(name)) pools.emplace(name, *pool);
  }
  if (pools.empty()) PAWL_CHECK(services.attached_pool());
  return pools;
}

Result<std::vector<Garbage>> find_garbage(ImageServices& services, const AttachedPools& pools,
                                          const Query& query, const IsBusy& is_busy) {
  PAWL_TRY(auto garbage, find_garbage_once(services, pools, query, is_busy));
  if (garbage.empty()) return garbage;
  // A run may have committed and ended between the moment at which its rows were read and the one at which it
  // was asked for. What it left is as it should be by now.
  PAWL_TRY(const auto again, find_garbage_once(services, pools, query, is_busy));
  std::erase_if(garbage,
                [&](const Garbage& found) { return std::ranges::find(again, found) == again.end(); });
  return garbage;
}

Result<bool> is_worked_on(std::string_view image_id,
                          const std::function<Result<Run>(std::string_view flow, std::string_view id)>& get) {
  // Files and rows that were added by hand may have any name; no run has such an id.
  if (!check_image_id(image_id)) return false;
  for (const auto flow : {kProcess, kDownload, kUnpack, kActivate, kDeactivate, kRemove}) {
    const auto run = get(flow, image_id);
    if (!run && run.error().code() == Code::unknown_instance) continue;
    if (!run) return fail(run.error());
    if (!run->finished) return true;
  }
  return false;
}

Flow<CollectRequest, ActionReport> collect_flow(ImageServices& services) {
  return flow<CollectRequest, ActionReport>(std::string(kCollect))
      .start("collect",
             [&services](Step& step, const CollectRequest& request, ActionReport& report) {
               return collect(services, step, request, report);
             },
             {.retry = fixed(2)})
      .end();
}

}  // namespace pawl::images
