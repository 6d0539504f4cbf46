// SPDX-License-Identifier: Apache-2.0
// What a pool says about itself and about its volumes.
#include <fmt/format.h>

#include <sstream>

#include "images/backend/os.hpp"
#include "images/backend/thin_pool.hpp"

namespace pawl::images::pools {
namespace {

constexpr std::uint64_t kMetadataBlock = 4096;
/// Above this much nothing new is begun: the kernel would accept it, and the writing would fail later.
constexpr std::uint64_t kMostPercent = 95;

bool is_above(std::uint64_t used, std::uint64_t all) { return used * 100 > all * kMostPercent; }

/// A pool whose metadata are full goes read-only and wants a check: that it is full is what has to be said.
bool is_full(const ThinStatus& status) {
  return status.mode == "out_of_data_space" || is_above(status.data_used, status.data_blocks) ||
         is_above(status.metadata_used, status.metadata_blocks);
}

}  // namespace

Result<ThinStatus> parse_thin_status(std::string_view line) {
  ThinStatus status;
  if (line.starts_with("Fail") || line.starts_with("Error")) {
    status.failed = true;
    return status;
  }
  std::istringstream words{std::string(line)};
  std::string transaction;
  std::string root;
  char slash = 0;
  words >> transaction >> status.metadata_used >> slash >> status.metadata_blocks >> status.data_used >>
      slash >> status.data_blocks >> root >> status.mode;
  if (!words)
    return fail(Code::volume_failed, fmt::format("the status of the pool cannot be parsed: {}", line));
  for (std::string word; words >> word;) status.needs_check = status.needs_check || word == "needs_check";
  return status;
}

Result<ThinStatus> ThinPool::status(const DeviceMapper& mapper) const {
  auto line = mapper.status(name_);
  if (!line && line.error().code() == Code::volume_missing) {
    return fail(Code::backend_unavailable, fmt::format("there is no pool {}; attach makes it", name_));
  }
  if (!line) return fail(std::move(line).error());
  return parse_thin_status(*line);
}

Result<PoolUsage> ThinPool::usage(const DeviceMapper& mapper) const {
  PAWL_TRY(const auto now, status(mapper));
  PoolUsage usage{.bytes = now.data_blocks * kThinBlockBytes,
                  .used = now.data_used * kThinBlockBytes,
                  .metadata_bytes = now.metadata_blocks * kMetadataBlock,
                  .metadata_used = now.metadata_used * kMetadataBlock,
                  .writable = !now.failed && !now.needs_check && now.mode == "rw",
                  .full = is_full(now)};
  if (now.failed) usage.problems.emplace_back("the pool has failed: its metadata cannot be read or written");
  if (now.needs_check) {
    usage.problems.emplace_back(
        "the pool needs a check: detach it, run thin_check --clear-needs-check-flag, attach it");
  }
  if (now.mode == "ro") usage.problems.emplace_back("the pool is read-only");
  if (now.mode == "out_of_data_space")
    usage.problems.emplace_back("the pool is out of data space: extend it");
  if (is_above(now.metadata_used, now.metadata_blocks)) {
    usage.problems.emplace_back("the metadata of the pool is almost full");
  }
  return usage;
}

Result<void> ThinPool::check_room(const DeviceMapper& mapper) const {
  PAWL_TRY(const auto now, status(mapper));
  if (is_full(now)) {
    return fail(
        Code::pool_full,
        fmt::format("{} of {} data blocks and {} of {} metadata blocks of the pool are used; above {} % "
                    "nothing new is begun",
                    now.data_used, now.data_blocks, now.metadata_used, now.metadata_blocks, kMostPercent));
  }
  if (now.failed || now.needs_check || now.mode == "ro") {
    PAWL_TRY(const auto known, usage(mapper));
    return fail(Code::backend_unavailable, fmt::format("{}", fmt::join(known.problems, "; ")));
  }
  return {};
}

Result<std::vector<VolumeUsage>> ThinPool::volumes(const DeviceMapper& mapper, bool with_usage) const {
  auto reserved = mapper.message(name_, "reserve_metadata_snap");
  if (!reserved && reserved.error().code() == Code::volume_busy) {
    // An interrupted call has left one, which is old by now.
    PAWL_CHECK(mapper.message(name_, "release_metadata_snap"));
    reserved = mapper.message(name_, "reserve_metadata_snap");
  }
  PAWL_CHECK(std::move(reserved));
  step_("reserve the metadata");
  const auto listed = run_program({"thin_ls", "--metadata-snap", "--no-headers", "--format",
                                   with_usage ? "DEV,EXCLUSIVE_BYTES,SHARED_BYTES" : "DEV", metadata_});
  PAWL_CHECK(mapper.message(name_, "release_metadata_snap"));
  step_("release the metadata");
  if (!listed) return fail(listed.error());
  std::vector<VolumeUsage> found;
  std::istringstream words(*listed);
  for (VolumeUsage volume; words >> volume.id;) {
    if (with_usage) words >> volume.exclusive >> volume.shared;
    found.push_back(volume);
  }
  if (words.eof()) return found;
  return fail(Code::volume_failed, fmt::format("the output of thin_ls cannot be parsed: {}", *listed));
}

}  // namespace pawl::images::pools
