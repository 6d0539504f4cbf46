// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The system's tables: what has been downloaded, unpacked and snapshotted, and which volumes belong to it.
///
///     PAWL_TRY(const auto image, find_image(query, "alpine"));
///     step.sql(save_image(*image, now));           // becomes durable with the step
///
/// Writing is data (`Sql`), so that it travels in the commit of the step that did the work. The statements
/// are the same on SQLite and PostgreSQL.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/backend/backend.hpp"
#include "pawl/error.hpp"
#include "pawl/sql.hpp"
#include "pawl/time.hpp"

namespace pawl::images {

using Rows = std::vector<std::vector<SqlValue>>;
/// Asks the store; a step's own, or the engine's.
using Query = std::function<Result<Rows>(const Sql&)>;

enum class DownloadStatus : std::uint8_t { downloading, completed, failed };
enum class ActivationStatus : std::uint8_t { inactive, active };

struct ImageRow {
  std::string image_id;
  std::string bucket;
  std::string s3_key;
  std::string local_path{};
  std::string checksum{};
  std::string etag{};
  std::int64_t size_bytes = 0;
  DownloadStatus download_status = DownloadStatus::downloading;
  ActivationStatus activation_status = ActivationStatus::inactive;
  std::string created_at{};
  std::string downloaded_at{};
  std::string activated_at{};
};

/// An image that lies unpacked in a volume.
struct UnpackedRow {
  std::string image_id;
  Volume volume;
  std::string device_path{};     ///< where it is while it is active
  bool layout_verified = false;  ///< always, as rows are written behind that step
  std::string checksum;          ///< of the archive it was unpacked from
  std::int64_t size_bytes = 0;
  std::int64_t file_count = 0;
  std::string unpacked_at{};
};

struct SnapshotRow {
  std::string image_id;
  Volume volume;
  std::uint32_t origin_id = 0;
  std::string device_path{};
  bool active = true;
  std::string created_at{};
};

/// What a volume id is used for. It is written before the volume is made, so that nothing in the pool is ever
/// unknown here.
enum class VolumeState : std::uint8_t {
  intended,  ///< may be there or not; garbage once its run has ended
  made,
  faulty,  ///< the pool has something else there; never used again
};
enum class VolumeKind : std::uint8_t { image, snapshot };

struct VolumeRow {
  Volume volume;
  VolumeKind kind = VolumeKind::image;
  std::string image_id;
  VolumeState state = VolumeState::intended;
};

/// Numbered by their places; what was released is not changed any more.
std::vector<Migration> image_migrations();

Result<std::optional<ImageRow>> find_image(const Query& query, std::string_view image_id);
Result<std::optional<ImageRow>> find_object(const Query& query, std::string_view bucket,
                                            std::string_view key);
Result<std::vector<ImageRow>> list_images(const Query& query);
Result<std::optional<UnpackedRow>> find_unpacked(const Query& query, std::string_view image_id);
Result<std::vector<UnpackedRow>> list_unpacked(const Query& query);
/// Of whatever image.
Result<std::optional<SnapshotRow>> find_snapshot(const Query& query, std::string_view name);
Result<std::optional<SnapshotRow>> find_snapshot_of(const Query& query, std::string_view image_id,
                                                    std::string_view name);
/// Of one image, or of all where none is named.
Result<std::vector<SnapshotRow>> list_snapshots(const Query& query, std::string_view image_id = {});
/// Of one image, or of all where none is named.
Result<std::vector<VolumeRow>> list_volumes(const Query& query, std::string_view image_id = {});
/// How many are made in this pool; empty: the default one.
Result<std::uint64_t> count_volumes(const Query& query, std::string_view pool = {});
/// The pool that has the image or snapshots of it; nothing where there are none.
Result<std::optional<std::string>> find_pool_of(const Query& query, std::string_view image_id);
/// Of all tables: the list of volumes may lack one that is in use.
Result<std::uint32_t> highest_volume(const Query& query);

/// All columns; the times as they are in the row.
Sql save_image(const ImageRow& row, Time now);
Sql set_download_failed(std::string_view image_id, Time now);
Sql save_unpacked(const UnpackedRow& row, Time now);
Sql save_snapshot(const SnapshotRow& row, Time now);
/// The image's status follows its snapshots: active while one of them is.
Sql follow_snapshots(std::string_view image_id, Time now);
Sql deactivate_snapshot(std::string_view name, Time now);
/// Where an active snapshot is now.
Sql move_snapshot(const Volume& volume, std::string_view device_path);
/// Fails where the id is taken meanwhile.
Sql add_volume(const VolumeRow& row, Time now);
Sql set_volume_state(std::uint32_t id, VolumeState state);
Sql forget_volume(std::uint32_t id);
/// Only the row that has this volume: another run may have written a newer one meanwhile.
Sql forget_unpacked(std::string_view image_id, std::uint32_t device_id);
Sql forget_snapshot(const Volume& volume);
Sql forget_image(std::string_view image_id);

}  // namespace pawl::images
