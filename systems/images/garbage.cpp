// SPDX-License-Identifier: Apache-2.0
#include "images/garbage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "images/names.hpp"
#include "pawl/names.hpp"

namespace pawl::images {
namespace {

/// Everything that is known, read in an order in which nothing that is just being made looks like garbage:
/// first what is there, then who says so. A volume is in the tables before it is in the pool, and is marked
/// as made in the commit that says what it is.
struct Inventory {
  std::map<std::uint32_t, FoundVolume> pool;
  std::vector<VolumeRow> volumes;
  std::vector<UnpackedRow> unpacked;
  std::vector<SnapshotRow> snapshots;
  std::vector<ImageRow> images;
  std::vector<std::string> files;
};

Result<Inventory> take_stock(Workshop& shop, const Query& query) {
  Inventory stock;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(shop.archives(), failure)) {
    stock.files.push_back(entry.path().filename().string());
  }
  if (failure) {
    return fail(Code::store_io, fmt::format("{} cannot be read: {}", shop.archives(), failure.message()));
  }
  std::ranges::sort(stock.files);
  PAWL_TRY(auto* pool, shop.pool());
  PAWL_TRY(auto found, pool->list());
  for (auto& volume : found) stock.pool.emplace(volume.id, std::move(volume));
  PAWL_TRY(stock.volumes, list_volumes(query));
  PAWL_TRY(stock.unpacked, list_unpacked(query));
  PAWL_TRY(stock.snapshots, list_snapshots(query));
  PAWL_TRY(stock.images, list_images(query));
  return stock;
}

/// The same answer for an image during one look.
class Busy {
 public:
  explicit Busy(const IsBusy& ask) : ask_(ask) {}
  Result<bool> operator()(const std::string& image_id) {
    const auto known = known_.find(image_id);
    if (known != known_.end()) return known->second;
    PAWL_TRY(const bool busy, ask_(image_id));
    known_.emplace(image_id, busy);
    return busy;
  }

 private:
  const IsBusy& ask_;
  std::map<std::string, bool> known_;
};

bool is_in(const std::map<std::uint32_t, FoundVolume>& pool, const Volume& volume) {
  const auto found = pool.find(volume.id);
  return found != pool.end() && is_volume(found->second, volume);
}

Result<void> judge_volumes(const Inventory& stock, Busy& busy, std::vector<Garbage>& garbage) {
  std::set<std::uint32_t> referenced;
  for (const auto& row : stock.unpacked) referenced.insert(row.volume.id);
  for (const auto& row : stock.snapshots) referenced.insert(row.volume.id);
  std::set<std::uint32_t> known;
  for (const auto& row : stock.volumes) {
    known.insert(row.volume.id);
    if (row.state == VolumeState::faulty) continue;
    PAWL_TRY(const bool is_busy, busy(row.image_id));
    if (is_busy) continue;
    const Garbage found{.volume = row.volume.id, .image_id = row.image_id, .name = row.volume.name};
    if (row.state == VolumeState::intended) {
      garbage.push_back(found);
      garbage.back().kind = GarbageKind::abandoned_volume;
    } else if (!referenced.contains(row.volume.id)) {
      garbage.push_back(found);
      garbage.back().kind = GarbageKind::unreferenced_volume;
    } else if (!is_in(stock.pool, row.volume)) {
      garbage.push_back(found);
      garbage.back().kind =
          row.kind == VolumeKind::image ? GarbageKind::lost_image : GarbageKind::lost_snapshot;
    }
  }
  // A row may have been removed by hand, so what it named is not known under its number any more.
  for (const auto& row : stock.unpacked) {
    PAWL_TRY(const bool is_busy, busy(row.image_id));
    if (is_busy || known.contains(row.volume.id)) continue;
    garbage.push_back({GarbageKind::lost_image, row.volume.id, row.image_id, row.volume.name});
  }
  for (const auto& row : stock.snapshots) {
    PAWL_TRY(const bool is_busy, busy(row.image_id));
    if (is_busy || known.contains(row.volume.id)) continue;
    garbage.push_back({GarbageKind::lost_snapshot, row.volume.id, row.image_id, row.volume.name});
  }
  for (const auto& [id, volume] : stock.pool) {
    if (known.contains(id)) continue;
    garbage.push_back({GarbageKind::unknown_volume, id, {}, volume.name});
  }
  return {};
}

Result<void> judge_files(const Workshop& shop, const Inventory& stock, Busy& busy,
                         std::vector<Garbage>& garbage) {
  std::set<std::string> complete;
  for (const auto& row : stock.images) {
    if (row.download_status == DownloadStatus::completed) complete.insert(row.image_id + ".tar");
  }
  for (const auto& file : stock.files) {
    const auto image = file.substr(0, file.find('.'));
    if (complete.contains(file)) continue;
    PAWL_TRY(const bool is_busy, busy(image));
    if (is_busy) continue;
    garbage.push_back({.kind = GarbageKind::stray_file,
                       .image_id = image,
                       .name = fmt::format("{}/{}", shop.archives(), file)});
  }
  return {};
}

/// What one finding comes to. What somebody uses stays, and is found again the next time.
Result<std::string> remove_garbage(Workshop& shop, Step& step, const Garbage& found) {
  if (found.kind == GarbageKind::stray_file) {
    std::error_code failure;
    std::filesystem::remove(found.name, failure);
    if (failure)
      return fail(Code::store_io, fmt::format("{} cannot be removed: {}", found.name, failure.message()));
    return fmt::format("removed the file {}", found.name);
  }
  if (found.kind == GarbageKind::lost_image || found.kind == GarbageKind::lost_snapshot) {
    if (found.kind == GarbageKind::lost_image) step.sql(forget_unpacked(found.image_id));
    if (found.kind == GarbageKind::lost_snapshot) step.sql(forget_snapshot(found.name));
    step.sql(forget_volume(found.volume));
    step.sql(follow_snapshots(found.image_id, step.now()));
    return fmt::format("forgot {}, which is not in the pool", found.name);
  }
  PAWL_TRY(auto* pool, shop.pool());
  PAWL_CHECK(pool->remove(found.volume));
  if (found.kind != GarbageKind::unknown_volume) step.sql(forget_volume(found.volume));
  return fmt::format("removed volume {} {}", found.volume, found.name);
}

Outcome collect(Workshop& shop, Step& step, const CollectRequest&, Deeds& deeds) {
  const auto get = [&](std::string_view flow, std::string_view id) { return step.get(flow, id); };
  PAWL_TRY(const auto garbage, look_for_garbage(shop, query_of(step),
                                                [&](std::string_view id) { return is_worked_on(id, get); }));
  deeds.deeds.clear();
  std::size_t done = 0;
  for (const auto& found : garbage) {
    if (step.stop().stop_requested()) return Error(Code::cancelled, "stopped before everything was removed");
    step.progress(static_cast<double>(done++) / static_cast<double>(garbage.size()), found.name);
    const auto deed = remove_garbage(shop, step, found);
    deeds.deeds.push_back(deed ? *deed : fmt::format("left {}: {}", found.name, deed.error().to_string()));
    shop.log().info("collected", {{"kind", enum_name(found.kind)}, {"deed", deeds.deeds.back()}});
  }
  return Outcome::done();
}

}  // namespace

Result<std::vector<Garbage>> look_for_garbage(Workshop& shop, const Query& query, const IsBusy& is_busy) {
  PAWL_TRY(const auto stock, take_stock(shop, query));
  Busy busy(is_busy);
  std::vector<Garbage> garbage;
  PAWL_CHECK(judge_volumes(stock, busy, garbage));
  PAWL_CHECK(judge_files(shop, stock, busy, garbage));
  return garbage;
}

Result<bool> is_worked_on(std::string_view image_id,
                          const std::function<Result<Run>(std::string_view flow, std::string_view id)>& get) {
  // A file or a row that somebody put there may have any name; then no run can have it.
  if (!check_image_id(image_id)) return false;
  for (const auto flow : {kProcess, kDownload, kUnpack, kActivate, kDeactivate, kRemove}) {
    const auto run = get(flow, image_id);
    if (!run && run.error().code() == Code::unknown_instance) continue;
    if (!run) return fail(run.error());
    if (!run->finished) return true;
  }
  return false;
}

Flow<CollectRequest, Deeds> collect_flow(Workshop& shop) {
  return flow<CollectRequest, Deeds>(std::string(kCollect))
      .start("collect",
             [&shop](Step& step, const CollectRequest& request, Deeds& deeds) {
               return collect(shop, step, request, deeds);
             },
             {.retry = fixed(2)})
      .end();
}

}  // namespace pawl::images
