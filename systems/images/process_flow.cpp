// SPDX-License-Identifier: Apache-2.0
// process-image: the three flows of an image, one after the other, as children of one run.
#include <fmt/format.h>

#include "images/flows.hpp"
#include "images/names.hpp"
#include "pawl/names.hpp"

namespace pawl::images {
namespace {

Outcome start_parts(ImageServices& services, Step& step, const ProcessRequest& request,
                    ProcessResponse& response) {
  if (const auto checked = check_image_id(step.id()); !checked) return abort_or_retry(checked.error());
  if (const auto named = services.object(request.bucket, request.s3_key); !named) {
    return abort_or_retry(named.error());
  }
  const auto& id = step.id();
  if (const auto kept = check_not_removed(step, id); !kept) return kept.error();
  response.image_id = id;
  const RunRef download{std::string(kDownload), id};
  const RunRef unpack{std::string(kUnpack), id};
  PAWL_CHECK(step.start_child(
      kDownload, DownloadRequest{.s3_key = request.s3_key, .image_id = id, .bucket = request.bucket},
      {.id = id, .queue = std::string(kDownloads)}));
  PAWL_CHECK(step.start_child(
      kUnpack,
      UnpackRequest{.image_id = id, .pool_name = request.pool_name, .device_size = request.device_size},
      {.id = id, .queue = std::string(kUnpacking), .after = download}));
  PAWL_CHECK(step.start_child(
      kActivate,
      ActivateRequest{.image_id = id, .snapshot_name = request.snapshot_name, .pool_name = request.pool_name},
      {.id = id, .after = unpack}));
  return Outcome::join();
}

/// Cancels the parts of a cancelled run, the last ones first: those that wait for another one
/// need not learn of its end. Where the run has ended by itself they have, too.
Outcome cancel_parts(Flows& flows, Step& step, const ProcessRequest&, ProcessResponse&) {
  for (const auto part : {kActivate, kUnpack, kDownload}) {
    const auto run = step.get(part, step.id());
    if (!run && run.error().code() == Code::unknown_instance) continue;
    if (!run) return run.error();
    const bool is_part = run->family && run->family->parent == RunRef{std::string(kProcess), step.id()};
    if (run->finished || !is_part) continue;
    const auto cancelled = flows.cancel(part, step.id(), "process-image was ended");
    // It may have ended meanwhile, or be about to.
    if (!cancelled && cancelled.error().code() != Code::finished_instance &&
        cancelled.error().code() != Code::illegal_event) {
      return cancelled.error();
    }
  }
  return Outcome::done();
}

/// Whether what is refused in this step is the image rather than the request or the pool.
bool is_about_archive(std::string_view step) {
  return step == "download" || step == "validate" || step == "extract-layers" || step == "verify-layout";
}

/// How the first part that did not succeed has ended, which the whole does likewise; nothing where all did.
Result<std::optional<Outcome>> what_failed(Step& step) {
  for (const auto part : {kDownload, kUnpack, kActivate}) {
    PAWL_TRY(const auto run, step.get(part, step.id()));
    if (run.state == RunState::done || run.state == RunState::handed_off) continue;
    auto why = fmt::format("{} {} at {}: {}", part, enum_name(run.state), run.step, run.error);
    if (run.state == RunState::aborted && is_about_archive(run.step)) {
      why += fmt::format("; `pawl images rm {}` removes what is known of the image", step.id());
    }
    if (run.state != RunState::failed) return Outcome::abort(std::move(why));
    return Outcome::unrecoverable(std::move(why), run.kind.value_or(FailureKind::system));
  }
  return std::nullopt;
}

Outcome collect_parts(Step& step, const ProcessRequest&, ProcessResponse& response) {
  PAWL_TRY(const auto failed, what_failed(step));
  if (failed) return *failed;
  const auto part = [&]<class T>(std::string_view flow, T) -> Result<T> {
    PAWL_TRY(const auto run, step.get(flow, step.id()));
    return decode<T>(run.response);
  };
  PAWL_TRY(const auto downloaded, part(kDownload, DownloadResponse{}));
  PAWL_TRY(const auto unpacked, part(kUnpack, UnpackResponse{}));
  PAWL_TRY(const auto activated, part(kActivate, ActivateResponse{}));
  response = {.image_id = downloaded.image_id,
              .checksum = downloaded.checksum,
              .size_bytes = downloaded.size_bytes,
              .file_count = unpacked.file_count,
              .snapshot_name = activated.snapshot_name,
              .device_path = activated.device_path,
              .downloaded = downloaded.downloaded,
              .unpacked = unpacked.unpacked,
              .activated = activated.activated,
              .notes = unpacked.notes};
  return Outcome::done();
}

}  // namespace

Flow<ProcessRequest, ProcessResponse> process_flow(ImageServices& services, Flows& flows) {
  return flow<ProcessRequest, ProcessResponse>(std::string(kProcess))
      .start("start-parts",
             [&services](Step& step, const ProcessRequest& request, ProcessResponse& response) {
               return start_parts(services, step, request, response);
             },
             {.retry = exponential(5, Jitter::equal)})
      .undo([&flows](Step& step, const ProcessRequest& request, ProcessResponse& response) {
        return cancel_parts(flows, step, request, response);
      })
      .to("collect-parts", collect_parts, {.retry = exponential(5, Jitter::equal)})
      .end();
}

}  // namespace pawl::images
