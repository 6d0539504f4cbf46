// SPDX-License-Identifier: Apache-2.0
#include "images/tables.hpp"

#include <fmt/format.h>

#include "pawl/names.hpp"

namespace pawl::images {
namespace {

constexpr std::string_view kImageColumns =
    "image_id, bucket, s3_key, local_path, checksum, etag, size_bytes, download_status, activation_status, "
    "created_at, downloaded_at, activated_at";
constexpr std::string_view kUnpackedColumns =
    "image_id, device_id, device_name, device_path, layout_verified, device_size_bytes, marker, checksum, "
    "size_bytes, file_count, unpacked_at, pool";
constexpr std::string_view kSnapshotColumns =
    "image_id, snapshot_id, snapshot_name, device_size_bytes, marker, origin_device_id, device_path, active, "
    "created_at, pool";
constexpr std::string_view kVolumeColumns = "id, name, size_bytes, marker, kind, image_id, state, pool";

/// The cells of one row, in order. What another program wrote into a table may have any type.
class Cells {
 public:
  explicit Cells(const std::vector<SqlValue>& row) : row_(row) {}

  std::string text() {
    const auto* value = std::get_if<std::string>(&next());
    return value == nullptr ? std::string() : *value;
  }
  std::int64_t number() {
    const auto* value = std::get_if<std::int64_t>(&next());
    return value == nullptr ? 0 : *value;
  }
  std::uint32_t id() {
    const auto value = number();
    return value < 0 || value > kLastVolumeId ? 0 : static_cast<std::uint32_t>(value);
  }
  std::uint64_t bytes() { return static_cast<std::uint64_t>(std::max<std::int64_t>(number(), 0)); }
  template <class E>
  E one_of(E default_value) {
    return enum_value<E>(text()).value_or(default_value);
  }

 private:
  const SqlValue::Variant& next() { return row_.at(place_++).get(); }
  const std::vector<SqlValue>& row_;
  std::size_t place_ = 0;
};

SqlValue text(std::string_view value) { return std::string(value); }
SqlValue number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

ImageRow to_image(const std::vector<SqlValue>& row) {
  Cells cells(row);
  ImageRow image;
  image.image_id = cells.text();
  image.bucket = cells.text();
  image.s3_key = cells.text();
  image.local_path = cells.text();
  image.checksum = cells.text();
  image.etag = cells.text();
  image.size_bytes = cells.number();
  image.download_status = cells.one_of(DownloadStatus::failed);
  image.activation_status = cells.one_of(ActivationStatus::inactive);
  image.created_at = cells.text();
  image.downloaded_at = cells.text();
  image.activated_at = cells.text();
  return image;
}

UnpackedRow to_unpacked(const std::vector<SqlValue>& row) {
  Cells cells(row);
  UnpackedRow unpacked;
  unpacked.image_id = cells.text();
  unpacked.volume.id = cells.id();
  unpacked.volume.name = cells.text();
  unpacked.device_path = cells.text();
  unpacked.layout_verified = cells.number() != 0;
  unpacked.volume.bytes = cells.bytes();
  unpacked.volume.marker = cells.text();
  unpacked.checksum = cells.text();
  unpacked.size_bytes = cells.number();
  unpacked.file_count = cells.number();
  unpacked.unpacked_at = cells.text();
  unpacked.volume.pool = cells.text();
  return unpacked;
}

SnapshotRow to_snapshot(const std::vector<SqlValue>& row) {
  Cells cells(row);
  SnapshotRow snapshot;
  snapshot.image_id = cells.text();
  snapshot.volume.id = cells.id();
  snapshot.volume.name = cells.text();
  snapshot.volume.bytes = cells.bytes();
  snapshot.volume.marker = cells.text();
  snapshot.origin_id = cells.id();
  snapshot.device_path = cells.text();
  snapshot.active = cells.number() != 0;
  snapshot.created_at = cells.text();
  snapshot.volume.pool = cells.text();
  return snapshot;
}

VolumeRow to_volume(const std::vector<SqlValue>& row) {
  Cells cells(row);
  VolumeRow volume;
  volume.volume.id = cells.id();
  volume.volume.name = cells.text();
  volume.volume.bytes = cells.bytes();
  volume.volume.marker = cells.text();
  volume.kind = cells.one_of(VolumeKind::image);
  volume.image_id = cells.text();
  volume.state = cells.one_of(VolumeState::intended);
  volume.volume.pool = cells.text();
  return volume;
}

template <class Row>
Result<std::vector<Row>> read_all(const Query& query, const Sql& statement,
                                  Row (*convert)(const std::vector<SqlValue>&)) {
  PAWL_TRY(const auto rows, query(statement));
  std::vector<Row> found;
  found.reserve(rows.size());
  for (const auto& row : rows) found.push_back(convert(row));
  return found;
}

template <class Row>
Result<std::optional<Row>> read_one(const Query& query, const Sql& statement,
                                    Row (*convert)(const std::vector<SqlValue>&)) {
  PAWL_TRY(auto found, read_all(query, statement, convert));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Sql by_image(std::string_view columns, std::string_view table, std::string_view image_id,
             std::string_view order) {
  if (image_id.empty()) return {.text = fmt::format("SELECT {} FROM {} ORDER BY {}", columns, table, order)};
  return {.text = fmt::format("SELECT {} FROM {} WHERE image_id = ?1 ORDER BY {}", columns, table, order),
          .rows = {{text(image_id)}}};
}

Migration first_tables() {
  return {
      {.text =
           "CREATE TABLE IF NOT EXISTS images(image_id TEXT PRIMARY KEY, bucket TEXT NOT NULL, s3_key TEXT "
           "NOT NULL, local_path TEXT NOT NULL, checksum TEXT NOT NULL, etag TEXT NOT NULL, size_bytes "
           "BIGINT NOT NULL CHECK(size_bytes >= 0), download_status TEXT NOT NULL, activation_status TEXT "
           "NOT NULL, created_at TEXT NOT NULL, downloaded_at TEXT NOT NULL, activated_at TEXT NOT NULL, "
           "updated_at TEXT NOT NULL, UNIQUE(bucket, s3_key))"},
      {.text =
           "CREATE TABLE IF NOT EXISTS images_unpacked(image_id TEXT PRIMARY KEY, device_id BIGINT NOT NULL "
           "UNIQUE, device_name TEXT NOT NULL UNIQUE, device_size_bytes BIGINT NOT NULL, marker TEXT NOT "
           "NULL, checksum TEXT NOT NULL, size_bytes BIGINT NOT NULL, file_count BIGINT NOT NULL, "
           "unpacked_at TEXT NOT NULL)"},
      {.text =
           "CREATE TABLE IF NOT EXISTS images_snapshots(snapshot_name TEXT PRIMARY KEY, image_id TEXT NOT "
           "NULL, snapshot_id BIGINT NOT NULL UNIQUE, device_size_bytes BIGINT NOT NULL, marker TEXT NOT "
           "NULL, origin_device_id BIGINT NOT NULL, device_path TEXT NOT NULL, active BIGINT NOT NULL, "
           "created_at TEXT NOT NULL, deactivated_at TEXT NOT NULL)"},
      {.text =
           "CREATE TABLE IF NOT EXISTS images_volumes(id BIGINT PRIMARY KEY, name TEXT NOT NULL, size_bytes "
           "BIGINT NOT NULL, marker TEXT NOT NULL, kind TEXT NOT NULL, image_id TEXT NOT NULL, state TEXT "
           "NOT NULL, created_at TEXT NOT NULL)"},
  };
}

/// By the names that the design gives them.
Migration renamed_tables() {
  return {{.text = "ALTER TABLE images_unpacked RENAME TO unpacked_images"},
          {.text = "ALTER TABLE unpacked_images ADD COLUMN device_path TEXT NOT NULL DEFAULT ''"},
          {.text = "ALTER TABLE unpacked_images ADD COLUMN layout_verified BIGINT NOT NULL DEFAULT 1"},
          {.text = "ALTER TABLE images_snapshots RENAME TO snapshots"}};
}

/// What there was before lies in the default pool.
Migration pool_columns() {
  return {{.text = "ALTER TABLE unpacked_images ADD COLUMN pool TEXT NOT NULL DEFAULT ''"},
          {.text = "ALTER TABLE snapshots ADD COLUMN pool TEXT NOT NULL DEFAULT ''"},
          {.text = "ALTER TABLE images_volumes ADD COLUMN pool TEXT NOT NULL DEFAULT ''"}};
}

}  // namespace

std::vector<Migration> image_migrations() { return {first_tables(), renamed_tables(), pool_columns()}; }

Result<std::optional<ImageRow>> find_image(const Query& query, std::string_view image_id) {
  return read_one(query,
                  {.text = fmt::format("SELECT {} FROM images WHERE image_id = ?1", kImageColumns),
                   .rows = {{text(image_id)}}},
                  to_image);
}

Result<std::optional<ImageRow>> find_object(const Query& query, std::string_view bucket,
                                            std::string_view key) {
  return read_one(
      query,
      {.text = fmt::format("SELECT {} FROM images WHERE bucket = ?1 AND s3_key = ?2", kImageColumns),
       .rows = {{text(bucket), text(key)}}},
      to_image);
}

Result<std::vector<ImageRow>> list_images(const Query& query) {
  return read_all(query, by_image(kImageColumns, "images", {}, "image_id"), to_image);
}

Result<std::optional<UnpackedRow>> find_unpacked(const Query& query, std::string_view image_id) {
  return read_one(query, by_image(kUnpackedColumns, "unpacked_images", image_id, "image_id"), to_unpacked);
}

Result<std::vector<UnpackedRow>> list_unpacked(const Query& query) {
  return read_all(query, by_image(kUnpackedColumns, "unpacked_images", {}, "image_id"), to_unpacked);
}

Result<std::optional<SnapshotRow>> find_snapshot(const Query& query, std::string_view name) {
  return read_one(query,
                  {.text = fmt::format("SELECT {} FROM snapshots WHERE snapshot_name = ?1", kSnapshotColumns),
                   .rows = {{text(name)}}},
                  to_snapshot);
}

Result<std::optional<SnapshotRow>> find_snapshot_of(const Query& query, std::string_view image_id,
                                                    std::string_view name) {
  return read_one(query,
                  {.text = fmt::format("SELECT {} FROM snapshots WHERE image_id = ?1 AND snapshot_name = ?2",
                                       kSnapshotColumns),
                   .rows = {{text(image_id), text(name)}}},
                  to_snapshot);
}

Result<std::vector<SnapshotRow>> list_snapshots(const Query& query, std::string_view image_id) {
  return read_all(query, by_image(kSnapshotColumns, "snapshots", image_id, "snapshot_name"), to_snapshot);
}

Result<std::vector<VolumeRow>> list_volumes(const Query& query, std::string_view image_id) {
  return read_all(query, by_image(kVolumeColumns, "images_volumes", image_id, "id"), to_volume);
}

Result<std::uint32_t> highest_volume(const Query& query) {
  PAWL_TRY(
      const auto rows,
      query({.text = "SELECT COALESCE(MAX(taken.id), 0) FROM (SELECT id FROM images_volumes UNION ALL SELECT "
                     "device_id FROM unpacked_images UNION ALL SELECT snapshot_id FROM snapshots) "
                     "AS taken"}));
  return rows.empty() ? 0 : Cells(rows.front()).id();
}

Result<std::uint64_t> count_volumes(const Query& query, std::string_view pool) {
  PAWL_TRY(const auto rows,
           query({.text = "SELECT COUNT(*) FROM images_volumes WHERE state = 'made' AND pool = ?1",
                  .rows = {{text(pool)}}}));
  return rows.empty() ? 0 : Cells(rows.front()).bytes();
}

Result<std::optional<std::string>> find_pool_of(const Query& query, std::string_view image_id) {
  PAWL_TRY(const auto unpacked, find_unpacked(query, image_id));
  if (unpacked) return unpacked->volume.pool;
  PAWL_TRY(const auto snapshots, list_snapshots(query, image_id));
  if (snapshots.empty()) return std::nullopt;
  return snapshots.front().volume.pool;
}

Sql save_image(const ImageRow& row, Time now) {
  return {
      .text =
          fmt::format("INSERT INTO images({}, updated_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
                      "?11, ?12, ?13) ON CONFLICT(image_id) DO UPDATE SET bucket = excluded.bucket, "
                      "s3_key = excluded.s3_key, local_path = excluded.local_path, checksum = "
                      "excluded.checksum, etag = excluded.etag, size_bytes = excluded.size_bytes, "
                      "download_status = excluded.download_status, downloaded_at = "
                      "excluded.downloaded_at, updated_at = excluded.updated_at",
                      kImageColumns),
      .rows = {{row.image_id, row.bucket, row.s3_key, row.local_path, row.checksum, row.etag, row.size_bytes,
                text(enum_name(row.download_status)), text(enum_name(row.activation_status)),
                row.created_at.empty() ? to_string(now) : row.created_at, row.downloaded_at, row.activated_at,
                to_string(now)}},
      .expect = 1};
}

Sql set_download_failed(std::string_view image_id, Time now) {
  return {.text =
              "UPDATE images SET download_status = 'failed', updated_at = ?2 WHERE image_id = ?1 AND "
              "download_status = 'downloading'",
          .rows = {{text(image_id), to_string(now)}}};
}

Sql save_unpacked(const UnpackedRow& row, Time now) {
  return {.text = fmt::format(
              "INSERT INTO unpacked_images({}) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
              "?11, ?12) ON CONFLICT(image_id) DO UPDATE SET device_id = excluded.device_id, "
              "device_name = excluded.device_name, device_path = excluded.device_path, "
              "layout_verified = excluded.layout_verified, device_size_bytes = "
              "excluded.device_size_bytes, marker = "
              "excluded.marker, checksum = excluded.checksum, size_bytes = excluded.size_bytes, "
              "file_count = excluded.file_count, unpacked_at = excluded.unpacked_at, pool = excluded.pool",
              kUnpackedColumns),
          .rows = {{row.image_id, number(row.volume.id), row.volume.name, row.device_path,
                    row.layout_verified ? 1 : 0, number(row.volume.bytes), row.volume.marker, row.checksum,
                    row.size_bytes, row.file_count, to_string(now), row.volume.pool}},
          .expect = 1};
}

Sql save_snapshot(const SnapshotRow& row, Time now) {
  return {.text = fmt::format(
              "INSERT INTO snapshots({}, deactivated_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, "
              "?8, ?9, ?10, '') ON CONFLICT(snapshot_name) DO UPDATE SET image_id = excluded.image_id, "
              "snapshot_id = excluded.snapshot_id, device_size_bytes = "
              "excluded.device_size_bytes, marker = excluded.marker, origin_device_id = "
              "excluded.origin_device_id, device_path = excluded.device_path, active = "
              "excluded.active, created_at = excluded.created_at, pool = excluded.pool, deactivated_at = ''",
              kSnapshotColumns),
          .rows = {{row.image_id, number(row.volume.id), row.volume.name, number(row.volume.bytes),
                    row.volume.marker, number(row.origin_id), row.device_path, row.active ? 1 : 0,
                    to_string(now), row.volume.pool}},
          .expect = 1};
}

Sql follow_snapshots(std::string_view image_id, Time now) {
  return {.text =
              "UPDATE images SET activation_status = CASE WHEN EXISTS(SELECT 1 FROM snapshots s WHERE "
              "s.image_id = ?1 AND s.active = 1) THEN 'active' ELSE 'inactive' END, activated_at = CASE WHEN "
              "EXISTS(SELECT 1 FROM snapshots s WHERE s.image_id = ?1 AND s.active = 1) THEN ?2 ELSE "
              "activated_at END, updated_at = ?2 WHERE image_id = ?1",
          .rows = {{text(image_id), to_string(now)}}};
}

Sql deactivate_snapshot(std::string_view name, Time now) {
  return {.text =
              "UPDATE snapshots SET active = 0, deactivated_at = ?2, device_path = '' WHERE "
              "snapshot_name = ?1 AND active = 1",
          .rows = {{text(name), to_string(now)}}};
}

Sql move_snapshot(const Volume& volume, std::string_view device_path) {
  return {.text =
              "UPDATE snapshots SET device_path = ?3 WHERE snapshot_name = ?1 AND snapshot_id = ?2 AND "
              "active = 1",
          .rows = {{text(volume.name), number(volume.id), text(device_path)}}};
}

Sql add_volume(const VolumeRow& row, Time now) {
  return {.text = fmt::format(
              "INSERT INTO images_volumes({}, created_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
              kVolumeColumns),
          .rows = {{number(row.volume.id), row.volume.name, number(row.volume.bytes), row.volume.marker,
                    text(enum_name(row.kind)), row.image_id, text(enum_name(row.state)), row.volume.pool,
                    to_string(now)}},
          .expect = 1};
}

Sql set_volume_state(std::uint32_t id, VolumeState state) {
  return {.text = "UPDATE images_volumes SET state = ?2 WHERE id = ?1",
          .rows = {{number(id), text(enum_name(state))}}};
}

Sql forget_volume(std::uint32_t id) {
  return {.text = "DELETE FROM images_volumes WHERE id = ?1 AND state <> 'faulty'", .rows = {{number(id)}}};
}

Sql forget_unpacked(std::string_view image_id, std::uint32_t device_id) {
  return {.text = "DELETE FROM unpacked_images WHERE image_id = ?1 AND device_id = ?2",
          .rows = {{text(image_id), number(device_id)}}};
}

Sql forget_snapshot(const Volume& volume) {
  return {.text = "DELETE FROM snapshots WHERE snapshot_name = ?1 AND snapshot_id = ?2",
          .rows = {{text(volume.name), number(volume.id)}}};
}

Sql forget_image(std::string_view image_id) {
  return {.text = "DELETE FROM images WHERE image_id = ?1", .rows = {{text(image_id)}}};
}

}  // namespace pawl::images
