// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The pool device of dm-thin: made once, attached again after every restart, queried for its content.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/backend/backend.hpp"
#include "images/backend/dm.hpp"
#include "images/backend/steps.hpp"

namespace pawl::images::pools {

/// What the kernel says about a pool.
struct ThinStatus {
  bool failed = false;
  bool needs_check = false;
  std::string mode;                 ///< "rw", "ro", "out_of_data_space"
  std::uint64_t metadata_used = 0;  ///< in blocks of 4 KiB
  std::uint64_t metadata_blocks = 0;
  std::uint64_t data_used = 0;  ///< in blocks of the pool
  std::uint64_t data_blocks = 0;
};

/// Reads a status line. Error: `volume_failed` if it is none.
Result<ThinStatus> parse_thin_status(std::string_view line);

inline constexpr std::uint64_t kThinBlockBytes = std::uint64_t{128} << 10U;
/// 0.2 % of the data, at least 4 MiB.
std::uint64_t thin_metadata_bytes(std::uint64_t data_bytes);

/// Not thread-safe: its owner lets callers take turns.
class ThinPool {
 public:
  ThinPool(const BackendOptions& options, Step step);

  Result<void> attach(const DeviceMapper& mapper);
  Result<void> detach(const DeviceMapper& mapper);
  Result<void> extend(const DeviceMapper& mapper, std::uint64_t bytes);

  Result<ThinStatus> status(const DeviceMapper& mapper) const;
  Result<PoolUsage> usage(const DeviceMapper& mapper) const;
  /// That something new may be begun. Errors: `pool_full`, `backend_unavailable`.
  Result<void> check_room(const DeviceMapper& mapper) const;

  Result<void> message(const DeviceMapper& mapper, const std::string& text) const {
    return mapper.message(name_, text);
  }
  /// The table of a volume.
  Result<DeviceMapper::Target> thin(const DeviceMapper& mapper, std::uint32_t id, std::uint64_t bytes,
                                    bool read_only) const;

  /// All volumes, active or not, with their shares.
  Result<std::vector<VolumeUsage>> volumes(const DeviceMapper& mapper, bool with_usage) const;

 private:
  bool owns_files() const { return given_data_.empty(); }
  std::string data_file() const { return root_ + "/data.img"; }
  std::string metadata_file() const { return root_ + "/metadata.img"; }
  std::string uuid() const { return "PAWL-" + name_ + "-pool"; }
  Result<bool> prepare();
  Result<void> open_files();
  Result<void> check_metadata() const;
  Result<DeviceMapper::Target> table() const;

  const std::string root_;
  const std::string name_;
  const std::string given_data_;
  const std::string given_metadata_;
  const std::uint64_t bytes_;
  const Duration busy_timeout_;
  Step step_;
  std::string data_;  ///< devices
  std::string metadata_;
};

}  // namespace pawl::images::pools
