// SPDX-License-Identifier: Apache-2.0
// activate-image: check-snapshot → create-snapshot → register.
#include <fmt/format.h>

#include "images/flows.hpp"
#include "images/names.hpp"

namespace pawl::images {
namespace {

Volume volume_of(const ActivateResponse& response) {
  return {.id = response.snapshot_id,
          .name = response.snapshot_name,
          .bytes = static_cast<std::uint64_t>(response.device_size),
          .marker = response.marker,
          .pool = response.pool_name};
}

Result<std::string> name_of(const ActivateRequest& request) {
  PAWL_CHECK(check_image_id(request.image_id));
  if (request.snapshot_name.empty()) return volume_name("snap", request.image_id);
  PAWL_CHECK(check_snapshot_name(request.snapshot_name));
  return request.snapshot_name;
}

/// The image must be unpacked, into the volume that the request names where it names one. Error:
/// `volume_missing`.
Result<UnpackedRow> origin_of(Step& step, const ActivateRequest& request) {
  PAWL_TRY(auto row, find_unpacked(query_of(step), request.image_id));
  if (!row) {
    return fail(Code::volume_missing,
                fmt::format("image \"{}\" is not unpacked; process it first", request.image_id));
  }
  if ((request.device_id != 0 && request.device_id != row->volume.id) ||
      (!request.device_name.empty() && request.device_name != row->volume.name)) {
    return fail(Code::volume_missing,
                fmt::format("image \"{}\" is unpacked in volume {} ({}), not in {} ({})", request.image_id,
                            row->volume.id, row->volume.name, request.device_id.number, request.device_name));
  }
  return *std::move(row);
}

/// A snapshot of something that the image is not any more, or one that is broken, makes way for a new one of
/// its name. One that is in use stays, with its row. Error: `volume_busy`.
Result<void> clear_outdated(ImageServices& services, Step& step, Backend& pool, const SnapshotRow& row) {
  services.log().warn("snapshot is gone or outdated; it is made anew",
                      {{"image_id", row.image_id}, {"snapshot_name", row.volume.name}});
  PAWL_CHECK(remove_volume(pool, row.volume));
  step.sql(forget_volume(row.volume.id));
  step.sql(forget_snapshot(row.volume));
  step.sql(follow_snapshots(row.image_id, step.now()));
  return {};
}

Outcome try_check_snapshot(ImageServices& services, Step& step, const ActivateRequest& request,
                           ActivateResponse& response, ErrorClass& error_class) {
  const auto name = name_of(request);
  if (!name) return abort_or_retry(name.error());
  if (const auto named = services.named_pool(request.pool_name); !named) return abort_or_retry(named.error());
  if (const auto kept = check_not_removed(step, request.image_id); !kept) return kept.error();
  const auto origin = origin_of(step, request);
  if (!origin) return abort_or_retry(origin.error());
  const auto query = query_of(step);
  const auto chosen = services.pool_for(query, request.image_id, request.pool_name);
  if (!chosen) return refuse_pool(chosen.error());
  error_class = ErrorClass::storage;
  PAWL_TRY(auto* pool, services.pool(*chosen));
  error_class = ErrorClass::other;
  PAWL_TRY(const auto row, find_snapshot_of(query, request.image_id, *name));
  if (!row) {
    PAWL_TRY(const auto other, find_snapshot(query, *name));
    if (other) {
      return Outcome::abort(fmt::format("snapshot \"{}\" is one of image \"{}\"; another name is needed",
                                        *name, other->image_id));
    }
  }
  response = {.image_id = request.image_id,
              .snapshot_name = *name,
              .origin_id = origin->volume.id,
              .pool_name = *chosen};
  response.device_size = static_cast<std::int64_t>(origin->volume.bytes);
  if (row && row->origin_id == origin->volume.id) {
    error_class = ErrorClass::storage;
    PAWL_TRY(const auto found, pool->find(row->volume));
    error_class = ErrorClass::other;
    if (is_sound(found, row->volume)) {
      response.snapshot_id = row->volume.id;
      response.marker = row->volume.marker;
      response.device_size = static_cast<std::int64_t>(row->volume.bytes);
      response.device_path = row->device_path;
      response.active = row->active && found->active;
      if (response.active) return Outcome::handoff("the snapshot is active already");
      // It is there but not active: the next step finds it and activates it.
      if (const auto own = check_own(step, request.image_id); !own) return abort_or_retry(own.error());
      return Outcome::done();
    }
  }
  if (const auto own = check_own(step, request.image_id); !own) return abort_or_retry(own.error());
  if (row) {
    error_class = ErrorClass::storage;
    PAWL_CHECK(clear_outdated(services, step, *pool, *row));
    error_class = ErrorClass::other;
  }
  PAWL_TRY(response.snapshot_id.number, services.allocate_volume_id(query));
  response.marker = make_marker();
  step.sql(
      add_volume({.volume = volume_of(response), .kind = VolumeKind::snapshot, .image_id = request.image_id},
                 step.now()));
  return Outcome::done();
}

Outcome check_snapshot(ImageServices& services, Step& step, const ActivateRequest& request,
                       ActivateResponse& response) {
  auto error_class = ErrorClass::other;
  auto outcome = try_check_snapshot(services, step, request, response, error_class);
  return limit_retries(services, step, error_class, std::move(outcome));
}

Outcome create_snapshot(ImageServices& services, Step& step, const ActivateRequest& request,
                        ActivateResponse& response) {
  const auto origin = origin_of(step, request);
  if (!origin) return abort_or_retry(origin.error());
  PAWL_TRY(auto* pool, services.pool(response.pool_name));
  const auto volume = volume_of(response);
  PAWL_TRY(const auto found, pool->find(volume));
  if (!is_sound(found, volume)) {
    const auto made = pool->snapshot(origin->volume, volume);
    if (!made && made.error().code() == Code::volume_exists) {
      step.sql(set_volume_state(volume.id, VolumeState::faulty));
      return Outcome::rewind("check-snapshot", made.error().message());
    }
    if (!made) return abort_or_retry(made.error());
  }
  const auto path = pool->activate(volume);
  if (!path) return abort_or_retry(path.error());
  response.device_path = *path;
  return Outcome::done();
}

Outcome remove_snapshot(ImageServices& services, Step& step, const ActivateRequest& request,
                        ActivateResponse& response) {
  if (response.snapshot_id == 0) return Outcome::done();
  // One that is registered was there before this run.
  PAWL_TRY(const auto row, find_snapshot_of(query_of(step), request.image_id, response.snapshot_name));
  if (row && row->volume.id == response.snapshot_id) return Outcome::done();
  PAWL_TRY(auto* pool, services.pool(response.pool_name));
  const auto volume = volume_of(response);
  PAWL_CHECK(remove_volume(*pool, volume));
  step.sql(forget_volume(volume.id));
  step.sql(follow_snapshots(request.image_id, step.now()));
  return Outcome::done();
}

Outcome register_snapshot(ImageServices& services, Step& step, const ActivateRequest& request,
                          ActivateResponse& response) {
  response.active = true;
  response.activated = true;
  step.sql(save_snapshot({.image_id = request.image_id,
                          .volume = volume_of(response),
                          .origin_id = response.origin_id,
                          .device_path = response.device_path,
                          .active = true},
                         step.now()));
  step.sql(set_volume_state(response.snapshot_id, VolumeState::made));
  step.sql(follow_snapshots(request.image_id, step.now()));
  services.log().info("activated", {{"image_id", request.image_id},
                                    {"snapshot_id", response.snapshot_id.number},
                                    {"snapshot_name", response.snapshot_name},
                                    {"device_path", response.device_path}});
  return Outcome::done();
}

}  // namespace

Flow<ActivateRequest, ActivateResponse> activate_flow(ImageServices& services) {
  const auto with =
      [&services](Outcome (*run)(ImageServices&, Step&, const ActivateRequest&, ActivateResponse&)) {
        return [&services, run](Step& step, const ActivateRequest& request, ActivateResponse& response) {
          return run(services, step, request, response);
        };
      };
  return flow<ActivateRequest, ActivateResponse>(std::string(kActivate))
      .start("check-snapshot", with(check_snapshot), {.retry = retry_by_class()})
      .to("create-snapshot", with(create_snapshot), {.retry = fixed(3), .rewinds = 3})
      .undo(with(remove_snapshot))
      .to("register", with(register_snapshot), {.retry = exponential(5, Jitter::equal)})
      .bind<UnpackResponse>([](ActivateRequest& request, const UnpackResponse& unpacked) {
        request.image_id = unpacked.image_id;
        request.device_id = unpacked.device_id;
        request.device_name = unpacked.device_name;
      })
      .end();
}

}  // namespace pawl::images
