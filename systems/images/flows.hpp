// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The flows of images.
///
///     add_image_flows(flows, services);
///     flows.start("process-image", ProcessRequest{.s3_key = "alpine.tar"}, {.id = image_id});
///
/// Every flow of an image has the image's id as the id of its run, so that two of them never work on the same
/// image. Rows are written in the commit of the step that did the work.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "images/image_services.hpp"
#include "images/volume_id.hpp"
#include "pawl/flow.hpp"
#include "pawl/flows.hpp"

namespace pawl::images {

inline constexpr std::string_view kProcess = "process-image";
inline constexpr std::string_view kDownload = "download-image";
inline constexpr std::string_view kUnpack = "unpack-image";
inline constexpr std::string_view kActivate = "activate-image";
inline constexpr std::string_view kDeactivate = "deactivate-image";
inline constexpr std::string_view kRemove = "remove-image";
inline constexpr std::string_view kCollect = "collect-image-garbage";
inline constexpr std::string_view kReactivate = "reactivate-snapshots";
/// Every flow whose runs may use the pool.
inline constexpr std::array kAllFlows = {kProcess,    kDownload, kUnpack,  kActivate,
                                         kDeactivate, kRemove,   kCollect, kReactivate};
inline constexpr std::string_view kDownloads = "downloads";  ///< the queue of downloads
inline constexpr std::string_view kUnpacking = "unpacking";

struct DownloadRequest {
  std::string s3_key;
  std::string image_id;
  std::string bucket{};
};
struct DownloadResponse {
  std::string image_id;
  std::string local_path;
  std::string checksum;
  std::string etag;
  std::int64_t size_bytes = 0;
  bool downloaded = false;
  bool already_exist = false;
};

struct UnpackRequest {
  std::string image_id;
  std::string local_path{};  ///< empty fields come from the download
  std::string checksum{};
  std::string pool_name{};
  std::int64_t device_size = 0;  ///< bytes; 0: as configured
};
struct UnpackResponse {
  std::string image_id;
  VolumeId device_id;
  std::string device_name;
  std::string device_path;  ///< where it is while it is active, which is as long as it is unpacked
  std::int64_t device_size = 0;
  std::string marker;
  std::int64_t size_bytes = 0;
  std::int64_t file_count = 0;
  bool unpacked = false;
  std::vector<std::string> notes{};
  std::string pool_name{};  ///< empty: the default one
};

struct ActivateRequest {
  std::string image_id;
  VolumeId device_id{};  ///< 0: comes from the unpacking, or from the tables
  std::string device_name{};
  std::string snapshot_name{};  ///< empty: "snap-<image>"
  std::string pool_name{};
};
struct ActivateResponse {
  std::string image_id;
  VolumeId snapshot_id;
  std::string snapshot_name;
  std::string device_path;
  VolumeId origin_id;
  std::int64_t device_size = 0;
  std::string marker;
  bool active = false;
  bool activated = false;
  std::string pool_name{};  ///< empty: the default one
};

struct ProcessRequest {
  std::string s3_key;
  std::string image_id{};
  std::string bucket{};
  std::string snapshot_name{};
  std::int64_t device_size = 0;
  std::string pool_name{};
};
struct ProcessResponse {
  std::string image_id;
  std::string checksum;
  std::int64_t size_bytes = 0;
  std::int64_t file_count = 0;
  std::string snapshot_name;
  std::string device_path;
  bool downloaded = false;
  bool unpacked = false;
  bool activated = false;
  std::vector<std::string> notes{};  ///< attributes that could not be kept, and unusual layout
};

/// Activates again what a restart of the machine has deactivated in one pool.
struct ReactivateRequest {
  std::string pool_name{};  ///< empty: the default one
};
/// The id of such a run: one for each pool, so that a pool that fails keeps none of the others back.
inline std::string reactivation_id(const std::string& pool) { return pool.empty() ? "all" : "pool-" + pool; }

struct DeactivateRequest {
  std::string image_id;
  std::string snapshot_name{};  ///< empty: all of them
};
struct RemoveRequest {
  std::string image_id;
};
/// What a run did, one sentence for each action, to be shown.
struct ActionReport {
  std::vector<std::string> actions;
};

Flow<DownloadRequest, DownloadResponse> download_flow(ImageServices& services);
Flow<UnpackRequest, UnpackResponse> unpack_flow(ImageServices& services);
Flow<ActivateRequest, ActivateResponse> activate_flow(ImageServices& services);
/// `flows` is used to cancel the parts when the run is cancelled.
Flow<ProcessRequest, ProcessResponse> process_flow(ImageServices& services, Flows& flows);
Flow<ReactivateRequest, ActionReport> reactivate_flow(ImageServices& services);
Flow<DeactivateRequest, ActionReport> deactivate_flow(ImageServices& services);
Flow<RemoveRequest, ActionReport> remove_flow(ImageServices& services);

/// Adds all of them.
void add_image_flows(Flows& flows, ImageServices& services);

// What the steps share.

/// Delays from 100 ms, doubled each time up to 5 s; `retries` counts those after the first attempt.
RetryPolicy exponential(std::uint32_t retries, Jitter jitter = Jitter::none);
RetryPolicy fixed(std::uint32_t retries);

/// Queries the tables within the step.
Query query_of(Step& step);

/// No run of these flows works on the image. Error: `volume_busy`.
Result<void> check_idle(Step& step, std::string_view image_id, std::initializer_list<std::string_view> flows);

/// No run removes the image. A removal looks for the runs that make the image, and those look for removals,
/// so that at least one of the two sees the other. A part of process-image need not look: process-image has
/// done so, and blocks removals as long as it runs. Error: `volume_busy`.
Result<void> check_not_removed(Step& step, std::string_view image_id);

/// This run may change the image: its id is the image's, by which other runs see that the image is in use.
/// Errors: `volume_busy` while a run with the right id works on it, `invalid_argument`.
Result<void> check_own(Step& step, std::string_view image_id);

/// Whether the pool holds exactly this volume, whole.
bool is_sound(const std::optional<FoundVolume>& found, const Volume& volume);

/// Removes the volume where the pool has it, and not another one in its place. True: it was there.
Result<bool> remove_volume(Backend& pool, const Volume& volume);

/// The first step of each flow retries errors of files and of the pool twice, and all others three
/// times, each class counted by itself.
inline constexpr std::uint32_t kOtherRetries = 3;
inline constexpr std::uint32_t kStorageRetries = 2;
/// Of such a step: enough for all errors of both classes.
RetryPolicy retry_by_class();

/// The outcome of such a step: an error is retried if its class has retries left, else the run fails. The
/// counts live as long as this process; after a restart, `retry_by_class` is the limit.
Outcome limit_retries(ImageServices& services, const Step& step, ErrorClass error_class, Outcome outcome);

/// Aborts on errors that another attempt cannot change; otherwise the step is retried.
Outcome abort_or_retry(const Error& error);

/// The same for the choice of a pool: that another one has the image stays so until it is removed.
Outcome refuse_pool(const Error& error);

}  // namespace pawl::images
