// SPDX-License-Identifier: Apache-2.0
// download-image: check-exists → download → validate → store-metadata.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "images/flows.hpp"
#include "images/names.hpp"
#include "images/rate.hpp"

namespace pawl::images {
namespace {

/// Whether the archive is there as the row says; if not, it has to be downloaded again.
Result<bool> is_intact(ImageServices& services, const ImageRow& row, const std::stop_token& stop) {
  if (row.download_status != DownloadStatus::completed) return false;
  std::error_code failure;
  const auto bytes = std::filesystem::file_size(row.local_path, failure);
  if (failure || bytes != static_cast<std::uint64_t>(row.size_bytes)) return false;
  PAWL_TRY(const auto checksum, services.checksum_of(row.local_path, stop));
  return checksum == row.checksum;
}

Outcome try_check_exists(ImageServices& services, Step& step, const DownloadRequest& request,
                         DownloadResponse& response, ErrorClass& error_class) {
  if (const auto checked = check_image_id(request.image_id); !checked) return abort_or_retry(checked.error());
  const auto name = services.object(request.bucket, request.s3_key);
  if (!name) return abort_or_retry(name.error());
  if (const auto kept = check_not_removed(step, request.image_id); !kept) return kept.error();
  const auto query = query_of(step);
  PAWL_TRY(auto row, find_object(query, name->bucket, request.s3_key));
  if (row) {
    error_class = ErrorClass::storage;
    PAWL_TRY(const bool intact, is_intact(services, *row, step.stop()));
    error_class = ErrorClass::other;
    if (intact) {
      // The object may be known under another id; the next flow continues with that one.
      response = {.image_id = row->image_id,
                  .local_path = row->local_path,
                  .checksum = row->checksum,
                  .etag = row->etag,
                  .size_bytes = row->size_bytes,
                  .downloaded = false,
                  .already_exist = true};
      return Outcome::handoff("the archive is there already");
    }
  } else {
    PAWL_TRY(const auto other, find_image(query, request.image_id));
    if (other) {
      return Outcome::abort(
          fmt::format("image \"{}\" is \"{}\" in bucket \"{}\"; another object needs another id",
                      request.image_id, other->s3_key, other->bucket));
    }
    row = ImageRow{.image_id = request.image_id, .bucket = name->bucket, .s3_key = request.s3_key};
  }
  // The same object may be on its way under another id, or this id be another one than the run's.
  if (const auto own = check_own(step, row->image_id); !own) return abort_or_retry(own.error());
  row->download_status = DownloadStatus::downloading;
  row->local_path = services.archive_of(row->image_id);
  response.image_id = row->image_id;
  response.local_path = row->local_path;
  step.sql(save_image(*row, step.now()));
  return Outcome::done();
}

Outcome check_exists(ImageServices& services, Step& step, const DownloadRequest& request,
                     DownloadResponse& response) {
  auto error_class = ErrorClass::other;
  auto outcome = try_check_exists(services, step, request, response, error_class);
  return limit_retries(services, step, error_class, std::move(outcome));
}

/// Shows how a download goes. Bytes come in small pieces, and people look at most a few times a second.
class ProgressReporter {
 public:
  explicit ProgressReporter(Step& step) : step_(step) {}
  void operator()(std::uint64_t done, std::uint64_t total) {
    constexpr Duration kBetween = std::chrono::milliseconds(200);
    const auto now = step_.now();
    // What an earlier attempt has fetched says nothing about how fast this one is; nor does what is there
    // before it begins anew because the object has changed.
    if (!begun_ || done < begin_) {
      begun_ = now;
      begin_ = done;
    } else if (now - last_ < kBetween && done != total) {
      return;
    }
    last_ = now;
    const Pace pace{.begin = begin_, .done = done, .total = total, .taken = now - *begun_};
    step_.progress(fraction_of(pace), pace_text(pace));
  }

 private:
  Step& step_;
  std::optional<Time> begun_;
  std::uint64_t begin_ = 0;
  Time last_{};
};

Outcome download(ImageServices& services, Step& step, const DownloadRequest& request,
                 DownloadResponse& response) {
  const auto name = services.object(request.bucket, request.s3_key);
  if (!name) return abort_or_retry(name.error());
  FetchOptions options{.max_bytes = services.options().image_bytes, .stop = step.stop()};
  options.progress = ProgressReporter(step);
  const auto fetched = services.source(*name).fetch(*name, response.local_path, options);
  if (!fetched) {
    if (fetched.error().code() == Code::too_large) {
      services.report_violation(response.image_id, request.s3_key, fetched.error());
    }
    return abort_or_retry(fetched.error());
  }
  response.checksum = fetched->sha256;
  response.etag = fetched->etag;
  response.size_bytes = static_cast<std::int64_t>(fetched->bytes);
  response.downloaded = true;
  services.log().info("downloaded", {{"image_id", response.image_id},
                                     {"s3_key", request.s3_key},
                                     {"bytes", response.size_bytes},
                                     {"resumed_at", fetched->resumed_at}});
  return Outcome::done();
}

/// What an unsuccessful run has downloaded is of no use to anybody.
Outcome discard(Step& step, const DownloadRequest&, DownloadResponse& response) {
  if (response.local_path.empty()) return Outcome::done();
  if (const auto forgotten = forget_part(response.local_path); !forgotten) return forgotten.error();
  std::error_code failure;
  std::filesystem::remove(response.local_path, failure);
  if (failure) {
    return Error(Code::store_io,
                 fmt::format("{} cannot be removed: {}", response.local_path, failure.message()));
  }
  step.sql(set_download_failed(response.image_id, step.now()));
  return Outcome::done();
}

Outcome validate(ImageServices& services, Step& step, const DownloadRequest& request,
                 DownloadResponse& response) {
  std::error_code failure;
  const bool there = std::filesystem::exists(response.local_path, failure);
  if (!there && !failure) return Outcome::rewind("download", "the archive is gone");
  if (failure) {
    return Error(Code::store_io,
                 fmt::format("{} cannot be read: {}", response.local_path, failure.message()));
  }
  PAWL_TRY(const auto checksum, services.checksum_of(response.local_path, step.stop()));
  if (checksum != response.checksum) {
    std::filesystem::remove(response.local_path, failure);
    return Outcome::rewind("download", fmt::format("the archive's SHA-256 is {} where {} was downloaded",
                                                   checksum, response.checksum));
  }
  auto options = services.archive_options(step.stop());
  options.progress = [&](std::uint64_t position, std::uint64_t total, std::uint64_t entries) {
    step.progress(total == 0 ? 0.0 : static_cast<double>(position) / static_cast<double>(total),
                  fmt::format("{} entries looked at", entries));
  };
  const auto found = scan(response.local_path, options);
  if (found) return Outcome::done();
  if (found.error().code() == Code::archive_hostile || found.error().code() == Code::archive_corrupt) {
    services.report_violation(response.image_id, request.s3_key, found.error());
  }
  return abort_or_retry(found.error());
}

Outcome store_metadata(ImageServices& services, Step& step, const DownloadRequest& request,
                       DownloadResponse& response) {
  const auto name = services.object(request.bucket, request.s3_key);
  if (!name) return abort_or_retry(name.error());
  step.sql(save_image({.image_id = response.image_id,
                       .bucket = name->bucket,
                       .s3_key = request.s3_key,
                       .local_path = response.local_path,
                       .checksum = response.checksum,
                       .etag = response.etag,
                       .size_bytes = response.size_bytes,
                       .download_status = DownloadStatus::completed,
                       .downloaded_at = to_string(step.now())},
                      step.now()));
  return Outcome::done();
}

}  // namespace

Flow<DownloadRequest, DownloadResponse> download_flow(ImageServices& services) {
  const auto with =
      [&services](Outcome (*run)(ImageServices&, Step&, const DownloadRequest&, DownloadResponse&)) {
        return [&services, run](Step& step, const DownloadRequest& request, DownloadResponse& response) {
          return run(services, step, request, response);
        };
      };
  return flow<DownloadRequest, DownloadResponse>(std::string(kDownload))
      .start("check-exists", with(check_exists), {.retry = retry_by_class()})
      .to("download", with(download),
          {.retry = services.options().download_retry, .timeout = services.options().download_timeout})
      .undo(discard)
      .to("validate", with(validate), {.retry = fixed(2), .rewinds = 1})
      .to("store-metadata", with(store_metadata), {.retry = exponential(5, Jitter::equal)})
      .end();
}

}  // namespace pawl::images
