// SPDX-License-Identifier: Apache-2.0
#include "images/views.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "images/flows.hpp"
#include "images/level.hpp"
#include "pawl/names.hpp"

namespace pawl::images {
namespace {

template <class View>
void add_usage(View& view, std::uint32_t id, const std::vector<VolumeUsage>& usage) {
  const auto found = std::ranges::find(usage, id, &VolumeUsage::id);
  if (found == usage.end()) return;
  view.exclusive_bytes = found->exclusive;
  view.shared_bytes = found->shared;
}

RunView view_run(const Run& run) {
  return {.flow = run.flow,
          .ulid = run.ulid,
          .state = std::string(enum_name(run.state)),
          .status = run.status,
          .finished = run.finished,
          .step = run.step,
          .attempt = run.attempt,
          .progress = run.progress,
          .progress_text = run.progress_text,
          .error = run.error};
}

Check check_directory(const ImageServices& services) {
  const auto& place = services.archives();
  if (::access(place.c_str(), W_OK) == 0)
    return {"archives", true, fmt::format("{} can be written", place), {}};
  return {"archives", false, fmt::format("{} cannot be written", place),
          "let the user of the server write there, or set images.directory"};
}

Check check_source(const ImageServices& services) {
  const auto& s3 = services.options().s3;
  const auto where = s3.endpoint.empty() ? fmt::format("Amazon in {}", s3.region) : s3.endpoint;
  const auto signer =
      s3.key_id.empty() ? std::string("without a signature") : fmt::format("as {}", s3.key_id);
  return {"source", true, fmt::format("{} {}", where, signer), {}};
}

std::string kind_of(const ImageServices& services, const std::string& pool) {
  return std::string(enum_name(services.pool_options(pool).kind));
}

Result<PoolUsage> usage_of(const ImageServices& services, const std::string& name) {
  PAWL_TRY(auto* pool, services.attached_pool(name));
  return pool->pool();
}

Result<PoolSummary> summarize_pool(const ImageServices& services, const std::string& pool,
                                   const Query& query) {
  PoolSummary summary{.pool_name = services.pool_title(pool),
                      .backend = kind_of(services, pool),
                      .root = services.pool_options(pool).root,
                      .attached = services.pool_state(pool) == PoolState::attached};
  PAWL_TRY(summary.volumes, count_volumes(query, pool));
  const auto usage = usage_of(services, pool);
  if (!usage) {
    summary.error = usage.error().to_string();
    return summary;
  }
  summary.bytes = usage->bytes;
  summary.used = usage->used;
  summary.alarm = enum_name(alarm(*usage, services.options().full));
  summary.problems = usage->problems;
  return summary;
}

Check check_pool(const ImageServices& services, const std::string& pool) {
  const auto title = pool.empty() ? std::string("pool") : "pool " + pool;
  const auto option = pool.empty() ? std::string() : " --pool-name " + pool;
  if (services.pool_state(pool) == PoolState::not_attached) return {title, true, "not attached yet", {}};
  const auto usage = usage_of(services, pool);
  if (!usage) {
    return {title, false, usage.error().to_string(),
            fmt::format("`pawl images setup-pool{}` attaches it", option)};
  }
  const bool has_room = alarm(*usage, services.options().full) != Alarm::full;
  if (has_room && !usage->problems.empty()) {
    return {title, false, usage->problems.front(), "see the kernel's log"};
  }
  return {title, has_room, fmt::format("{} ({} bytes)", level_text(*usage), usage->bytes),
          has_room ? std::string()
                   : fmt::format("`pawl images gc`, or `pawl images setup-pool{} --extend SIZE`", option)};
}

}  // namespace

Result<ImageView> view_image(const ImageServices& services, const ImageRow& row, const Query& query,
                             Flows& flows, const std::vector<VolumeUsage>& usage) {
  ImageView view{.image_id = row.image_id,
                 .bucket = row.bucket,
                 .s3_key = row.s3_key,
                 .checksum = row.checksum,
                 .size_bytes = row.size_bytes,
                 .download_status = std::string(enum_name(row.download_status)),
                 .activation_status = std::string(enum_name(row.activation_status)),
                 .created_at = row.created_at,
                 .downloaded_at = row.downloaded_at,
                 .activated_at = row.activated_at};
  PAWL_TRY(const auto unpacked, find_unpacked(query, row.image_id));
  if (unpacked) {
    view.unpacked = UnpackedView{.device_id = unpacked->volume.id,
                                 .device_name = unpacked->volume.name,
                                 .device_path = unpacked->device_path,
                                 .device_size_bytes = static_cast<std::int64_t>(unpacked->volume.bytes),
                                 .size_bytes = unpacked->size_bytes,
                                 .file_count = unpacked->file_count,
                                 .unpacked_at = unpacked->unpacked_at,
                                 .pool_name = services.pool_title(unpacked->volume.pool)};
    add_usage(*view.unpacked, unpacked->volume.id, usage);
  }
  PAWL_TRY(const auto snapshots, list_snapshots(query, row.image_id));
  for (const auto& snapshot : snapshots) {
    view.snapshots.push_back({.snapshot_name = snapshot.volume.name,
                              .snapshot_id = snapshot.volume.id,
                              .device_path = snapshot.device_path,
                              .active = snapshot.active,
                              .created_at = snapshot.created_at});
    add_usage(view.snapshots.back(), snapshot.volume.id, usage);
  }
  for (const auto flow : {kProcess, kDownload, kUnpack, kActivate}) {
    const auto run = flows.get(flow, row.image_id);
    if (run) view.runs.push_back(view_run(*run));
    if (!run && run.error().code() != Code::unknown_instance) return fail(run.error());
  }
  return view;
}

Result<PoolView> view_pool(const ImageServices& services, const std::string& pool, const Query& query) {
  PAWL_TRY(auto* backend, services.attached_pool(pool));
  PAWL_TRY(const auto usage, backend->pool());
  // Of the tables: asking the pool for each of its volumes takes long, and a dashboard asks often.
  PAWL_TRY(const auto volumes, count_volumes(query, pool));
  PoolView view{.pool_name = services.pool_title(pool),
                .backend = kind_of(services, pool),
                .root = services.pool_options(pool).root,
                .bytes = usage.bytes,
                .used = usage.used,
                .metadata_bytes = usage.metadata_bytes,
                .metadata_used = usage.metadata_used,
                .writable = usage.writable,
                .alarm = std::string(enum_name(alarm(usage, services.options().full))),
                .problems = usage.problems,
                .volumes = volumes};
  for (const auto& name : services.pools()) {
    PAWL_TRY(auto summary, summarize_pool(services, name, query));
    view.pools.push_back(std::move(summary));
  }
  return view;
}

GarbageList view_garbage(const ImageServices& services, const std::vector<Garbage>& garbage) {
  GarbageList list;
  for (const auto& found : garbage) {
    list.garbage.push_back({std::string(enum_name(found.kind)), found.volume, found.image_id, found.name,
                            found.volume == 0 ? std::string() : services.pool_title(found.pool)});
  }
  return list;
}

Diagnosis diagnose(const ImageServices& services) {
  Diagnosis diagnosis;
  auto& checks = diagnosis.checks;
  checks.push_back(check_directory(services));
  checks.push_back(check_source(services));
  for (const auto& choice : available_backends()) {
    const bool wanted = std::ranges::any_of(services.pools(), [&](const std::string& pool) {
      return services.pool_options(pool).kind == choice.kind;
    });
    checks.push_back(
        {.name = fmt::format("back end {}{}", enum_name(choice.kind), wanted ? " (in use)" : ""),
         .good = choice.available,
         .found = choice.available ? "can be used here" : choice.reason,
         .help = choice.available || !wanted ? "" : "choose another one with images.backend or images.pools",
         .needed = wanted});
  }
  for (const auto& pool : services.pools()) checks.push_back(check_pool(services, pool));
  diagnosis.healthy =
      std::ranges::all_of(checks, [](const Check& check) { return check.good || !check.needed; });
  return diagnosis;
}

}  // namespace pawl::images
