// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The volumes of a dm-thin pool as devices. An active volume is a device under its own name with the UUID
/// "PAWL-<pool>-<id>-<marker>"; devices that live only during a call have another ending, so that what an
/// interrupted call has left is never taken for a volume.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/backend/dm.hpp"
#include "images/backend/thin_label.hpp"
#include "images/backend/thin_pool.hpp"

namespace pawl::images::pools {

struct ThinDevice {
  DeviceMapper::Info info;
  std::uint32_t id = 0;
  std::string marker;  ///< empty: it lives only during a call
};

/// Not thread-safe: its owner lets callers take turns.
class ThinVolumes {
 public:
  ThinVolumes(const BackendOptions& options, const Step& step)
      : name_(options.pool), busy_timeout_(options.busy_timeout), step_(step), pool_(options, step) {}

  ThinPool& pool() { return pool_; }

  /// Those of this pool.
  Result<std::vector<ThinDevice>> devices(const DeviceMapper& mapper) const;
  Result<std::optional<ThinDevice>> device(const DeviceMapper& mapper, std::uint32_t id) const;

  /// Resumes what was left suspended and removes what lived only during a call.
  Result<void> tidy(const DeviceMapper& mapper) const;

  /// What the beginning of an inactive volume shows; nullopt if absent.
  Result<std::optional<ThinFace>> look(const DeviceMapper& mapper, std::uint32_t id) const;

  /// Calls `use` with a device of the first `bytes` of an inactive volume. Error: `volume_missing`.
  Result<void> with_device(const DeviceMapper& mapper, std::uint32_t id, std::uint64_t bytes, bool read_only,
                           const std::function<Result<void>(const std::string&)>& use) const;

  /// Finds or makes the device; its path.
  Result<std::string> activate(const DeviceMapper& mapper, const Volume& volume) const;
  Result<void> deactivate(const DeviceMapper& mapper, std::uint32_t id) const;
  /// From the pool; no-op if absent.
  Result<void> erase(const DeviceMapper& mapper, std::uint32_t id) const;

 private:
  const std::string name_;
  const Duration busy_timeout_;
  Step step_;
  ThinPool pool_;
};

}  // namespace pawl::images::pools
