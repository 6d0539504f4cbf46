// SPDX-License-Identifier: Apache-2.0
#pragma once

/// File systems that are mounted, by asking the kernel.

#include <string>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::images::pools {

struct Mounted {
  unsigned major = 0;
  unsigned minor = 0;
  std::string point;
  std::string source{};  ///< what was mounted; the numbers of btrfs are not those of its device
};

/// All of this process's view.
Result<std::vector<Mounted>> mounts();

/// Whether the topmost file system at `point` is the one of this block device. Error: `volume_busy` where
/// another one is mounted there.
Result<bool> is_mounted(const std::string& device, const std::string& point);
/// Whether it is mounted anywhere.
Result<bool> is_mounted_anywhere(const std::string& device);

/// Finds it mounted or mounts it with nodev and nosuid; makes the mount point.
Result<void> mount_device(const std::string& device, const std::string& point, const std::string& type,
                          const std::string& settings);

/// Unmounts what is at `point`, never by force and never lazily, and removes the mount point; nothing where
/// nothing is mounted. Error: `volume_busy` if it is in use for longer than `busy_timeout`.
Result<void> unmount_device(const std::string& point, Duration busy_timeout);

}  // namespace pawl::images::pools
