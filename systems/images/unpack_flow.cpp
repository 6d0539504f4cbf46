// SPDX-License-Identifier: Apache-2.0
// unpack-image: check-unpacked → create-device → extract-layers → verify-layout → update-db.
//
// A volume that is being unpacked stays mounted from one step to the next; each step mounts it first all the
// same, because after a restart nothing is mounted. What was half unpacked is never gone on with: the volume
// is made anew.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "images/descriptor.hpp"
#include "images/flows.hpp"
#include "images/level.hpp"
#include "images/names.hpp"
#include "images/rate.hpp"

namespace pawl::images {
namespace {

Result<Descriptor> open_place(const std::string& path) {
  Descriptor opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (opened) return opened;
  return fail(Code::volume_failed,
              fmt::format("{} cannot be opened: {}", path, std::generic_category().message(errno)));
}

Volume volume_of(const UnpackResponse& response) {
  return {.id = response.device_id,
          .name = response.device_name,
          .bytes = static_cast<std::uint64_t>(response.device_size),
          .marker = response.marker,
          .pool = response.pool_name};
}

/// The archive to unpack, where the request does not say it: of the download, which the tables know. Only
/// what was downloaded for this image is unpacked, whatever else lies on the machine. Error:
/// `invalid_argument`.
Result<UnpackRequest> complete(const ImageServices& services, Step& step, UnpackRequest request) {
  if (!request.local_path.empty() && request.local_path != services.archive_of(request.image_id)) {
    return fail(Code::invalid_argument,
                fmt::format("\"{}\" is not the archive of image \"{}\", which is {}", request.local_path,
                            request.image_id, services.archive_of(request.image_id)));
  }
  if (!request.local_path.empty() && !request.checksum.empty()) return request;
  PAWL_TRY(const auto row, find_image(query_of(step), request.image_id));
  if (!row || row->download_status != DownloadStatus::completed) {
    return fail(Code::invalid_argument,
                fmt::format("image \"{}\" is not downloaded; process it first", request.image_id));
  }
  request.local_path = row->local_path;
  request.checksum = row->checksum;
  return request;
}

/// The object that the image came from, for the log; empty if there is no record of it.
std::string key_of(Step& step, const std::string& image_id) {
  const auto row = find_image(query_of(step), image_id);
  return row && *row ? (*row)->s3_key : std::string();
}

Outcome try_check_unpacked(ImageServices& services, Step& step, const UnpackRequest& given,
                           UnpackResponse& response, ErrorClass& error_class) {
  if (const auto checked = check_image_id(given.image_id); !checked) return abort_or_retry(checked.error());
  if (const auto named = services.named_pool(given.pool_name); !named) return abort_or_retry(named.error());
  if (const auto kept = check_not_removed(step, given.image_id); !kept) return kept.error();
  const auto request = complete(services, step, given);
  if (!request) return abort_or_retry(request.error());
  const auto bytes =
      given.device_size == 0 ? static_cast<std::int64_t>(services.options().volume_bytes) : given.device_size;
  if (const auto checked = check_volume_size(bytes); !checked) return abort_or_retry(checked.error());
  const auto query = query_of(step);
  const auto chosen = services.pool_for(query, given.image_id, given.pool_name);
  if (!chosen) return refuse_pool(chosen.error());
  error_class = ErrorClass::storage;
  PAWL_TRY(auto* pool, services.pool(*chosen));
  error_class = ErrorClass::other;
  PAWL_TRY(const auto row, find_unpacked(query, given.image_id));
  if (row) {
    error_class = ErrorClass::storage;
    PAWL_TRY(const auto found, pool->find(row->volume));
    error_class = ErrorClass::other;
    if (row->layout_verified && row->checksum == request->checksum && is_sound(found, row->volume)) {
      response = {.image_id = given.image_id,
                  .device_id = row->volume.id,
                  .device_name = row->volume.name,
                  .device_path = row->device_path,
                  .device_size = static_cast<std::int64_t>(row->volume.bytes),
                  .marker = row->volume.marker,
                  .size_bytes = row->size_bytes,
                  .file_count = row->file_count,
                  .unpacked = false,
                  .pool_name = *chosen};
      return Outcome::handoff("the image is unpacked already");
    }
    // What is still there of it is left to the collection.
    if (!found) step.sql(forget_volume(row->volume.id));
  }
  if (const auto own = check_own(step, given.image_id); !own) return abort_or_retry(own.error());
  if (row) {
    services.log().warn("unpacked image is gone or outdated; it is made anew",
                        {{"image_id", given.image_id}});
    // Its snapshots stay: they have their own copy of the data.
    step.sql(forget_unpacked(given.image_id, row->volume.id));
  }
  PAWL_TRY(const auto id, services.allocate_volume_id(query));
  response.image_id = given.image_id;
  response.device_id = id;
  // The number makes it unique also while an older one of the same image waits for its removal.
  response.device_name = volume_name(fmt::format("img{}", id), given.image_id);
  response.device_size = bytes;
  response.marker = make_marker();
  response.pool_name = *chosen;
  step.sql(add_volume({.volume = volume_of(response), .kind = VolumeKind::image, .image_id = given.image_id},
                      step.now()));
  return Outcome::done();
}

Outcome check_unpacked(ImageServices& services, Step& step, const UnpackRequest& given,
                       UnpackResponse& response) {
  auto error_class = ErrorClass::other;
  auto outcome = try_check_unpacked(services, step, given, response, error_class);
  return limit_retries(services, step, error_class, std::move(outcome));
}

/// Refuses before the pool is so full that writers fail. That it is full is said first: a full pool has other
/// problems because of that, and they would be tried again.
Result<void> check_room(ImageServices& services, Backend& pool) {
  PAWL_TRY(const auto usage, pool.pool());
  if (alarm(usage, services.options().full) == Alarm::full) {
    return fail(Code::pool_full, fmt::format("{}; above {:.0f} % nothing new is unpacked", level_text(usage),
                                             100 * services.options().full));
  }
  if (!usage.problems.empty()) return fail(Code::backend_unavailable, usage.problems.front());
  return {};
}

/// What a failure of the volume comes to: a full pool shows as a device that fails.
Outcome classify_volume_error(ImageServices& services, Backend& pool, const Error& error) {
  if (const auto room = check_room(services, pool); !room && room.error().code() == Code::pool_full) {
    return abort_or_retry(room.error());
  }
  return abort_or_retry(error);
}

Outcome create_device(ImageServices& services, Step& step, const UnpackRequest&, UnpackResponse& response) {
  PAWL_TRY(auto* pool, services.pool(response.pool_name));
  if (const auto room = check_room(services, *pool); !room) return abort_or_retry(room.error());
  const auto volume = volume_of(response);
  // Whatever is there of it is of an attempt that was cut off.
  PAWL_CHECK(remove_volume(*pool, volume));
  const auto made = pool->create(volume);
  if (made) return Outcome::done();
  if (made.error().code() == Code::volume_exists) {
    step.sql(set_volume_state(volume.id, VolumeState::faulty));
    return Outcome::rewind("check-unpacked", made.error().message());
  }
  return classify_volume_error(services, *pool, made.error());
}

/// Unmounts and removes; what cannot be removed stays known as intended, and is left to the collection.
Outcome remove_device(ImageServices& services, Step& step, const UnpackRequest&, UnpackResponse& response) {
  if (response.device_id == 0) return Outcome::done();
  PAWL_TRY(auto* pool, services.pool(response.pool_name));
  const auto volume = volume_of(response);
  PAWL_CHECK(remove_volume(*pool, volume));
  step.sql(forget_volume(volume.id));
  services.forget_overdue(step.run_ulid());
  return Outcome::done();
}

bool is_empty(const std::string& path) {
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(path, failure)) {
    if (entry.path().filename() != "lost+found") return false;
  }
  return !failure;
}

/// After an error that is tried again: the next attempt finds an empty volume, and this one keeps its own
/// reason. Where that fails, the next attempt finds a part of an image and goes back to create-device.
void empty_volume(Step& step, Backend& pool, const Volume& volume) {
  if (step.stop().stop_requested()) return;
  if (remove_volume(pool, volume)) (void)pool.create(volume);
}

/// Whether the attempt that began then was asked to stop because its time is over, not by a cancellation. The
/// engine's clock for it began at about the same time.
bool is_out_of_time(const ImageServices& services, Step& step, Time begun) {
  constexpr Duration kAbout = std::chrono::seconds(1);
  return step.stop().stop_requested() && step.now() - begun + kAbout >= services.options().unpack_timeout;
}

Outcome abort_overdue(const ImageServices& services) {
  return Outcome::abort(
      fmt::format("unpacking took longer than {}", to_string(services.options().unpack_timeout)));
}

Outcome extract_layers(ImageServices& services, Step& step, const UnpackRequest& given,
                       UnpackResponse& response) {
  const auto begun = step.now();
  // An attempt that did not stop when it was asked to counts as failed before it returns; this is the next.
  if (services.is_overdue(step.run_ulid())) return abort_overdue(services);
  const auto request = complete(services, step, given);
  if (!request) return abort_or_retry(request.error());
  PAWL_TRY(auto* pool, services.pool(response.pool_name));
  const auto place = pool->mount(volume_of(response));
  if (!place && place.error().code() == Code::volume_missing) {
    return Outcome::rewind("create-device", "the volume is gone");
  }
  if (!place) return classify_volume_error(services, *pool, place.error());
  if (!is_empty(*place))
    return Outcome::rewind("create-device", "an interrupted attempt has left a part of it");
  PAWL_TRY(auto root, open_place(*place));
  auto options = services.archive_options(step.stop());
  // What was validated in this process and not touched since needs not be hashed again.
  const bool known = services.has_checksum(request->local_path, request->checksum);
  if (!known) options.sha256 = request->checksum;
  options.progress = [&, mounted = step.now()](std::uint64_t position, std::uint64_t total,
                                               std::uint64_t entries) {
    const Pace pace{.done = position, .total = total, .taken = step.now() - mounted};
    step.progress(fraction_of(pace), fmt::format("{} files, {}", entries, pace_text(pace)));
  };
  const auto written = extract(request->local_path, root.get(), options);
  root = {};  // what is open keeps the volume from being unmounted
  if (!written) {
    const auto& error = written.error();
    if (error.code() == Code::archive_hostile || error.code() == Code::archive_corrupt)
      services.report_violation(given.image_id, key_of(step, given.image_id), error);
    if (error.code() == Code::cancelled && is_out_of_time(services, step, begun)) {
      services.mark_overdue(step.run_ulid());
      return abort_overdue(services);
    }
    auto outcome = classify_volume_error(services, *pool, error);
    if (outcome.kind() == Outcome::Kind::again) empty_volume(step, *pool, volume_of(response));
    return outcome;
  }
  if (known && !services.has_checksum(request->local_path, request->checksum)) {
    return Error(Code::store_io, fmt::format("{} was changed while it was unpacked", request->local_path));
  }
  response.size_bytes = static_cast<std::int64_t>(written->bytes);
  response.file_count = static_cast<std::int64_t>(written->files);
  response.notes = written->notes;
  return Outcome::done();
}

Outcome verify(ImageServices& services, Step& step, const UnpackRequest& request, UnpackResponse& response) {
  PAWL_TRY(auto* pool, services.pool(response.pool_name));
  const auto place = pool->mount(volume_of(response));
  if (!place) return classify_volume_error(services, *pool, place.error());
  PAWL_TRY(const auto root, open_place(*place));
  const auto unusual = verify_layout(root.get(), services.options().layout);
  if (!unusual) {
    if (unusual.error().code() == Code::layout_invalid) {
      services.report_violation(request.image_id, key_of(step, request.image_id), unusual.error());
    }
    return abort_or_retry(unusual.error());
  }
  for (const auto& note : *unusual) {
    response.notes.push_back(note);
    services.log().warn("unusual layout",
                        {{"image_id", request.image_id}, {"note", note}, {"step", step.name()}});
  }
  return Outcome::done();
}

Outcome update_db(ImageServices& services, Step& step, const UnpackRequest& given, UnpackResponse& response) {
  const auto request = complete(services, step, given);
  if (!request) return abort_or_retry(request.error());
  PAWL_TRY(auto* pool, services.pool(response.pool_name));
  const auto volume = volume_of(response);
  PAWL_TRY(const auto found, pool->find(volume));
  if (found && !found->path.empty()) response.device_path = found->path;
  if (const auto gone = pool->unmount(volume); !gone)
    return classify_volume_error(services, *pool, gone.error());
  response.unpacked = true;
  step.sql(save_unpacked({.image_id = given.image_id,
                          .volume = volume,
                          .device_path = response.device_path,
                          .layout_verified = true,
                          .checksum = request->checksum,
                          .size_bytes = response.size_bytes,
                          .file_count = response.file_count},
                         step.now()));
  step.sql(set_volume_state(volume.id, VolumeState::made));
  services.log().info("unpacked", {{"image_id", given.image_id},
                                   {"device_id", response.device_id.number},
                                   {"device_name", response.device_name},
                                   {"files", response.file_count},
                                   {"bytes", response.size_bytes}});
  return Outcome::done();
}

}  // namespace

Flow<UnpackRequest, UnpackResponse> unpack_flow(ImageServices& services) {
  const auto with =
      [&services](Outcome (*run)(ImageServices&, Step&, const UnpackRequest&, UnpackResponse&)) {
        return [&services, run](Step& step, const UnpackRequest& request, UnpackResponse& response) {
          return run(services, step, request, response);
        };
      };
  return flow<UnpackRequest, UnpackResponse>(std::string(kUnpack))
      .start("check-unpacked", with(check_unpacked), {.retry = retry_by_class()})
      .to("create-device", with(create_device), {.retry = fixed(3), .rewinds = 3})
      .undo(with(remove_device))
      .to("extract-layers", with(extract_layers),
          {.retry = fixed(2), .timeout = services.options().unpack_timeout, .rewinds = 3})
      .to("verify-layout", with(verify), {.retry = fixed(2)})
      .to("update-db", with(update_db), {.retry = exponential(5)})
      .bind<DownloadResponse>([](UnpackRequest& request, const DownloadResponse& downloaded) {
        request.image_id = downloaded.image_id;
        request.local_path = downloaded.local_path;
        request.checksum = downloaded.checksum;
      })
      .end();
}

}  // namespace pawl::images
