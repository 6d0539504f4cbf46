// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The device mapper, by its ioctls: errno says more than the output of a program. Nothing here needs udev.
///
///     PAWL_TRY(const auto mapper, DeviceMapper::open());
///     PAWL_CHECK(mapper.create("img-1", "PAWL-pawl-1-…"));
///     PAWL_CHECK(mapper.load("img-1", {.sectors = 2048, .type = "thin", .parameters = "253:0 1"}));
///     PAWL_CHECK(mapper.resume("img-1"));

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/backend/os.hpp"
#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::images::pools {

inline constexpr std::uint64_t kSectorBytes = 512;

/// Const methods are safe concurrently; the kernel orders them. Errors: `volume_exists` (EEXIST),
/// `volume_missing` (ENODATA, ENXIO), `volume_busy` (EBUSY), `pool_full` (ENOSPC), `backend_unavailable` (the
/// pool refuses changes, or no privileges), otherwise `volume_failed`.
class DeviceMapper {
 public:
  struct Info {
    std::string name;
    std::string uuid;
    dev_t device = 0;
    bool live = false;  ///< it has a table
    bool suspended = false;
  };

  struct Target {
    std::uint64_t sectors = 0;
    std::string type;
    std::string parameters;
    bool read_only = false;
  };

  static Result<DeviceMapper> open();

  /// That the kernel has targets of this type.
  Result<void> check_target(const std::string& type) const;
  Result<std::vector<std::string>> names() const;
  /// Nullopt if absent.
  Result<std::optional<Info>> info(const std::string& name) const;
  Result<void> create(const std::string& name, const std::string& uuid) const;
  Result<void> load(const std::string& name, const Target& target) const;
  /// Also takes the table that was loaded into use.
  Result<void> resume(const std::string& name) const;
  /// Flushes, and freezes a file system that is on it.
  Result<void> suspend(const std::string& name) const;
  /// Never by force; no-op if absent.
  Result<void> remove(const std::string& name, Duration busy_timeout) const;
  /// The status line of its first target.
  Result<std::string> status(const std::string& name) const;
  Result<void> message(const std::string& name, const std::string& text) const;

 private:
  explicit DeviceMapper(Descriptor control) : control_(std::move(control)) {}

  Descriptor control_;
};

/// "/dev/dm-3"; made if udev does not.
Result<std::string> device_node(const DeviceMapper::Info& info);
/// "/dev/mapper/<name>", leading to the node.
Result<std::string> named_node(const DeviceMapper::Info& info);

}  // namespace pawl::images::pools
