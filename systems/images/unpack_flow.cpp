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
#include "images/names.hpp"

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
          .marker = response.marker};
}

/// The archive to unpack, where the request does not say it: of the download, which the tables know.
Result<UnpackRequest> complete(Step& step, UnpackRequest request) {
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

/// What is known of an image that is not there as it should be goes, and with it what was made of it.
Result<void> forget_stale(Step& step, const std::string& image_id) {
  PAWL_TRY(const auto snapshots, list_snapshots(query_of(step), image_id));
  for (const auto& snapshot : snapshots) {
    // Snapshots keep their own copy of the data; only their origin is gone.
    if (!snapshot.active) step.sql(forget_snapshot(snapshot.volume.name));
  }
  step.sql(forget_unpacked(image_id));
  return {};
}

Outcome check_unpacked(Workshop& shop, Step& step, const UnpackRequest& given, UnpackResponse& response) {
  if (const auto checked = check_image_id(given.image_id); !checked) return give_up_or_retry(checked.error());
  const auto request = complete(step, given);
  if (!request) return give_up_or_retry(request.error());
  const auto bytes =
      given.device_size == 0 ? static_cast<std::int64_t>(shop.options().volume_bytes) : given.device_size;
  if (const auto checked = check_volume_size(bytes); !checked) return give_up_or_retry(checked.error());
  PAWL_TRY(auto* pool, shop.pool());
  const auto query = query_of(step);
  PAWL_TRY(const auto row, find_unpacked(query, given.image_id));
  if (row && row->checksum == request->checksum) {
    PAWL_TRY(const auto found, pool->find(row->volume));
    if (is_sound(found, row->volume)) {
      response = {.image_id = given.image_id,
                  .device_id = row->volume.id,
                  .device_name = row->volume.name,
                  .device_size = static_cast<std::int64_t>(row->volume.bytes),
                  .marker = row->volume.marker,
                  .size_bytes = row->size_bytes,
                  .file_count = row->file_count,
                  .unpacked = false};
      return Outcome::handoff("the image is unpacked already");
    }
  }
  if (row) {
    shop.log().warn("unpacked image is gone or outdated; it is made anew", {{"image_id", given.image_id}});
    PAWL_CHECK(forget_stale(step, given.image_id));
  }
  PAWL_TRY(const auto id, shop.take_volume_id(query));
  response.image_id = given.image_id;
  response.device_id = id;
  // The number makes it unique also while an older one of the same image waits for its removal.
  response.device_name = volume_name(fmt::format("img{}", id), given.image_id);
  response.device_size = bytes;
  response.marker = make_marker();
  step.sql(intend_volume(
      {.volume = volume_of(response), .kind = VolumeKind::image, .image_id = given.image_id}, step.now()));
  return Outcome::done();
}

/// Refuses before the pool is so full that writers fail.
Result<void> check_room(Workshop& shop, Backend& pool) {
  PAWL_TRY(const auto usage, pool.pool());
  if (!usage.problems.empty()) return fail(Code::backend_unavailable, usage.problems.front());
  if (usage.bytes > 0 &&
      static_cast<double>(usage.used) > shop.options().full * static_cast<double>(usage.bytes)) {
    return fail(Code::pool_full,
                fmt::format("{} of {} bytes of the pool are used; above {:.0f} % nothing new is "
                            "unpacked",
                            usage.used, usage.bytes, 100 * shop.options().full));
  }
  return {};
}

Outcome create_device(Workshop& shop, Step& step, const UnpackRequest&, UnpackResponse& response) {
  PAWL_TRY(auto* pool, shop.pool());
  if (const auto room = check_room(shop, *pool); !room) return give_up_or_retry(room.error());
  const auto volume = volume_of(response);
  // Whatever is there of it is of an attempt that was cut off.
  PAWL_CHECK(remove_volume(*pool, volume));
  const auto made = pool->create(volume);
  if (made) return Outcome::done();
  if (made.error().code() == Code::volume_exists) {
    step.sql(set_volume_state(volume.id, VolumeState::faulty));
    return Outcome::rewind("check-unpacked", made.error().message());
  }
  return give_up_or_retry(made.error());
}

/// Unmounts and removes; what cannot be removed stays known as intended, and is left to the collection.
Outcome remove_device(Workshop& shop, Step& step, const UnpackRequest&, UnpackResponse& response) {
  if (response.device_id == 0) return Outcome::done();
  PAWL_TRY(auto* pool, shop.pool());
  const auto volume = volume_of(response);
  PAWL_CHECK(remove_volume(*pool, volume));
  step.sql(forget_volume(volume.id));
  return Outcome::done();
}

bool is_empty(const std::string& path) {
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(path, failure)) {
    if (entry.path().filename() != "lost+found") return false;
  }
  return !failure;
}

Outcome extract_layers(Workshop& shop, Step& step, const UnpackRequest& given, UnpackResponse& response) {
  const auto request = complete(step, given);
  if (!request) return give_up_or_retry(request.error());
  PAWL_TRY(auto* pool, shop.pool());
  const auto place = pool->mount(volume_of(response));
  if (!place && place.error().code() == Code::volume_missing) {
    return Outcome::rewind("create-device", "the volume is gone");
  }
  if (!place) return give_up_or_retry(place.error());
  if (!is_empty(*place))
    return Outcome::rewind("create-device", "an interrupted attempt has left a part of it");
  PAWL_TRY(const auto root, open_place(*place));
  const auto begun = step.now();
  auto options = shop.archive_options(step.stop());
  options.progress = [&](std::uint64_t position, std::uint64_t total, std::uint64_t entries) {
    step.progress(total == 0 ? 0.0 : static_cast<double>(position) / static_cast<double>(total),
                  fmt::format("{} files, {:.1f} of {:.1f} MB", entries, static_cast<double>(position) / 1e6,
                              static_cast<double>(total) / 1e6));
  };
  const auto written = extract(request->local_path, root.get(), options);
  if (!written) {
    const auto& error = written.error();
    if (error.code() == Code::archive_hostile)
      shop.report_violation(given.image_id, request->local_path, error);
    if (step.stop().stop_requested() && step.now() - begun >= shop.options().unpack_timeout) {
      return Outcome::abort(
          fmt::format("unpacking took longer than {}", to_string(shop.options().unpack_timeout)));
    }
    // A full pool shows as a failing device.
    if (const auto room = check_room(shop, *pool); !room && room.error().code() == Code::pool_full) {
      return give_up_or_retry(room.error());
    }
    return give_up_or_retry(error);
  }
  response.size_bytes = static_cast<std::int64_t>(written->bytes);
  response.file_count = static_cast<std::int64_t>(written->files);
  response.notes = written->notes;
  return Outcome::done();
}

Outcome verify(Workshop& shop, Step& step, const UnpackRequest& request, UnpackResponse& response) {
  PAWL_TRY(auto* pool, shop.pool());
  const auto place = pool->mount(volume_of(response));
  if (!place) return give_up_or_retry(place.error());
  PAWL_TRY(const auto root, open_place(*place));
  const auto unusual = verify_layout(root.get(), shop.options().layout);
  if (!unusual) {
    if (unusual.error().code() == Code::layout_invalid) {
      shop.report_violation(request.image_id, response.device_name, unusual.error());
    }
    return give_up_or_retry(unusual.error());
  }
  for (const auto& note : *unusual) {
    response.notes.push_back(note);
    shop.log().warn("unusual layout",
                    {{"image_id", request.image_id}, {"note", note}, {"step", step.name()}});
  }
  return Outcome::done();
}

Outcome update_db(Workshop& shop, Step& step, const UnpackRequest& given, UnpackResponse& response) {
  const auto request = complete(step, given);
  if (!request) return give_up_or_retry(request.error());
  PAWL_TRY(auto* pool, shop.pool());
  const auto volume = volume_of(response);
  if (const auto gone = pool->unmount(volume); !gone) return give_up_or_retry(gone.error());
  response.unpacked = true;
  step.sql(save_unpacked({.image_id = given.image_id,
                          .volume = volume,
                          .checksum = request->checksum,
                          .size_bytes = response.size_bytes,
                          .file_count = response.file_count},
                         step.now()));
  step.sql(set_volume_state(volume.id, VolumeState::made));
  shop.log().info("unpacked", {{"image_id", given.image_id},
                               {"device_id", response.device_id},
                               {"device_name", response.device_name},
                               {"files", response.file_count},
                               {"bytes", response.size_bytes}});
  return Outcome::done();
}

}  // namespace

Flow<UnpackRequest, UnpackResponse> unpack_flow(Workshop& shop) {
  const auto with = [&shop](Outcome (*run)(Workshop&, Step&, const UnpackRequest&, UnpackResponse&)) {
    return [&shop, run](Step& step, const UnpackRequest& request, UnpackResponse& response) {
      return run(shop, step, request, response);
    };
  };
  return flow<UnpackRequest, UnpackResponse>(std::string(kUnpack))
      .start("check-unpacked", with(check_unpacked), {.retry = exponential(3)})
      .to("create-device", with(create_device), {.retry = fixed(3), .rewinds = 3})
      .undo(with(remove_device))
      .to("extract-layers", with(extract_layers),
          {.retry = fixed(2), .timeout = shop.options().unpack_timeout, .rewinds = 3})
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
