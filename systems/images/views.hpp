// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the API shows of images, as values that are encoded as they are.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "images/backend/backend.hpp"
#include "images/garbage.hpp"
#include "images/volume_id.hpp"

namespace pawl::images {

struct UnpackedView {
  VolumeId device_id;
  std::string device_name;
  std::string device_path;
  std::int64_t device_size_bytes = 0;
  std::int64_t size_bytes = 0;
  std::int64_t file_count = 0;
  std::string unpacked_at;
  std::string pool_name{};
  std::optional<std::uint64_t> exclusive_bytes{};  ///< where the back end can tell
  std::optional<std::uint64_t> shared_bytes{};
};

struct SnapshotView {
  std::string snapshot_name;
  VolumeId snapshot_id;
  std::string device_path;
  bool active = false;
  std::string created_at;
  std::optional<std::uint64_t> exclusive_bytes{};
  std::optional<std::uint64_t> shared_bytes{};
};

/// The newest run of one of the flows.
struct RunView {
  std::string flow;
  std::string ulid;
  std::string state;
  std::string status;
  bool finished = false;
  std::string step;
  std::uint32_t attempt = 0;
  std::optional<double> progress{};
  std::string progress_text;
  std::string error;
};

struct ImageView {
  std::string image_id;
  std::string bucket;
  std::string s3_key;
  std::string checksum;
  std::int64_t size_bytes = 0;
  std::string download_status;
  std::string activation_status;
  std::string created_at;
  std::string downloaded_at;
  std::string activated_at;
  std::optional<UnpackedView> unpacked{};
  std::vector<SnapshotView> snapshots{};
  std::vector<RunView> runs{};  ///< process, download, unpack and activate, as far as there are any
};
struct ImageList {
  std::vector<ImageView> images;
  std::string next{};  ///< to be given as `after`; empty: there are no more
};

struct StartedView {
  std::string image_id;
  std::string flow;
  std::string run_ulid;
  std::string state;
  bool attached = false;  ///< it was running already
};

/// One of the configured pools.
struct PoolSummary {
  std::string pool_name;
  std::string backend;
  std::string root;
  bool attached = false;
  std::string error{};  ///< why it is not attached, or does not answer
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;
  std::string alarm{};  ///< none, filling, full
  std::vector<std::string> problems{};
  std::uint64_t volumes = 0;
};

struct PoolView {
  std::string pool_name;
  std::string backend;
  std::string root;
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;
  std::optional<std::uint64_t> metadata_bytes{};
  std::optional<std::uint64_t> metadata_used{};
  bool writable = true;
  std::string alarm{};  ///< none, filling, full
  std::vector<std::string> problems{};
  std::uint64_t volumes = 0;
  std::vector<PoolSummary> pools{};  ///< all that are configured, the default one first
};

/// A pool that was given back.
struct DetachedView {
  std::string pool_name;
  std::string backend;
  std::string root;
};

struct GarbageView {
  std::string kind;
  VolumeId volume;
  std::string image_id;
  std::string name;
  std::string pool_name{};  ///< of a volume
};
struct GarbageList {
  std::vector<GarbageView> garbage;
};

/// One thing that the doctor looked at.
struct Check {
  std::string name;
  bool good = false;
  std::string found;   ///< what is there
  std::string help;    ///< what would make it good; empty where it is, or is not needed
  bool needed = true;  ///< false: what is not good does no harm, such as a back end that is not in use
};
struct Diagnosis {
  bool healthy = true;
  std::vector<Check> checks;
};

Result<ImageView> view_image(const ImageServices& services, const ImageRow& row, const Query& query,
                             Flows& flows, const std::vector<VolumeUsage>& usage);
/// The pool that is asked for, and the list of all. Errors: those of the pool that is asked for.
Result<PoolView> view_pool(const ImageServices& services, const std::string& pool, const Query& query);
GarbageList view_garbage(const ImageServices& services, const std::vector<Garbage>& garbage);
Diagnosis diagnose(const ImageServices& services);

}  // namespace pawl::images
