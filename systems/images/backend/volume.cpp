// SPDX-License-Identifier: Apache-2.0
#include "images/backend/volume.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "images/backend/os.hpp"

namespace pawl::images::pools {
namespace {

constexpr std::size_t kLongestVolumeName = 127;
constexpr std::string_view kMarkerShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

bool in_volume_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool in_marker(char c, char shape) {
  return shape == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

mode_t mode_of(WriteFailure write_failure) {
  switch (write_failure) {
    case WriteFailure::none:
      return 0600;
    case WriteFailure::pool_full:
      return 0400;
    case WriteFailure::volume_failed:
      return 0440;
  }
  return 0600;
}

}  // namespace

Result<void> check_volume_id(std::uint32_t id) {
  if (id >= 1 && id <= kLastVolumeId) return {};
  return fail(Code::invalid_argument, fmt::format("volume id {}: ids go from 1 to {}", id, kLastVolumeId));
}

Result<void> check_volume(const Volume& volume) {
  PAWL_CHECK(check_volume_id(volume.id));
  if (volume.name.empty() || volume.name.size() > kLongestVolumeName ||
      !std::ranges::all_of(volume.name, in_volume_name)) {
    return fail(Code::invalid_argument,
                fmt::format("volume name \"{}\": it has 1 to {} letters, digits, \"-\" and \"_\"",
                            volume.name.substr(0, 2 * kLongestVolumeName), kLongestVolumeName));
  }
  if (volume.marker.size() != kMarkerShape.size() ||
      !std::ranges::equal(volume.marker, kMarkerShape, in_marker)) {
    return fail(Code::invalid_argument,
                fmt::format("the marker \"{}\" of volume {} is not a UUID in lower case",
                            volume.marker.substr(0, 64), volume.id));
  }
  if (volume.bytes == 0 || volume.bytes % 4096 != 0) {
    return fail(Code::invalid_argument, fmt::format("volume {} of {} bytes: its size is a multiple of 4096",
                                                    volume.id, volume.bytes));
  }
  return {};
}

Result<void> check_copy(const Volume& origin, const Volume& copy) {
  PAWL_CHECK(check_volume(origin));
  PAWL_CHECK(check_volume(copy));
  if (origin.id == copy.id) {
    return fail(Code::invalid_argument, fmt::format("volume {} cannot be a snapshot of itself", copy.id));
  }
  if (copy.bytes >= origin.bytes) return {};
  return fail(Code::invalid_argument,
              fmt::format("volume {} of {} bytes cannot hold its origin, which has {}", copy.id, copy.bytes,
                          origin.bytes));
}

Error missing_volume(const Volume& volume, std::string_view why) {
  return {Code::volume_missing,
          fmt::format("volume {} ({}) {}", volume.id, volume.name, why),
          {{"volume", std::to_string(volume.id)}}};
}

Error taken_volume(const Volume& volume, std::string_view other_marker) {
  return {Code::volume_exists,
          fmt::format("volume {} is taken by {}; {} needs another id", volume.id, other_marker, volume.name),
          {{"volume", std::to_string(volume.id)}}};
}

Error incomplete_volume(const Volume& volume, WriteFailure write_failure) {
  const bool full = write_failure == WriteFailure::pool_full;
  return {full ? Code::pool_full : Code::volume_failed,
          fmt::format("not everything could be written into volume {} ({}){}; make it anew", volume.id,
                      volume.name, full ? " because the pool is full" : ""),
          {{"volume", std::to_string(volume.id)}}};
}

Result<void> record_write_failure(const std::string& file, WriteFailure write_failure) {
  PAWL_TRY(const auto opened, open_file(file, O_RDONLY));
  if (::fchmod(opened.get(), mode_of(write_failure)) == 0 && ::fsync(opened.get()) == 0) return {};
  return fail(system_error("note in the mode of", file));
}

WriteFailure recorded_write_failure(const std::string& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return WriteFailure::none;
  for (const auto write_failure : {WriteFailure::pool_full, WriteFailure::volume_failed}) {
    if ((status.st_mode & 07777U) == mode_of(write_failure)) return write_failure;
  }
  return WriteFailure::none;
}

VolumeLocks::Hold::Hold(VolumeLocks& locks, std::set<std::uint32_t> ids)
    : locks_(locks), ids_(std::move(ids)) {
  std::unique_lock lock(locks_.mutex_);
  locks_.freed_.wait(lock, [&] {
    return std::ranges::none_of(ids_, [&](std::uint32_t id) { return locks_.held_.contains(id); });
  });
  locks_.held_.insert(ids_.begin(), ids_.end());
}

VolumeLocks::Hold::~Hold() {
  {
    const std::lock_guard lock(locks_.mutex_);
    for (const auto id : ids_) locks_.held_.erase(id);
  }
  locks_.freed_.notify_all();
}

}  // namespace pawl::images::pools
