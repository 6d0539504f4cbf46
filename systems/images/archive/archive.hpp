// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading archives that may be hostile: a scan that writes nothing, and an extraction that writes nothing
/// outside its root.
///
///     PAWL_TRY(const auto found, scan("alpine.tar", {}));
///     PAWL_TRY(const auto written, extract("alpine.tar", root, {}));   // `root`: a descriptor of a directory
///
/// Both apply the same rules, so that what passed the scan is refused by the extraction only for what the
/// place lacks.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::images {

struct ArchiveLimits {
  std::uint64_t entries = 100'000;
  std::uint64_t file_bytes = std::uint64_t{1} << 30;
  std::uint64_t total_bytes = std::uint64_t{10} << 30;
};

/// What to do with a regular file that is setuid or setgid.
enum class SetIdPolicy : std::uint8_t { reject, strip, allow };
/// What to do with a symbolic link to an absolute path. `in_root` takes it as seen from the root file system.
enum class AbsoluteLinkPolicy : std::uint8_t { reject, in_root };
/// What to do with device nodes. `below_dev` takes those below dev/.
enum class DevicePolicy : std::uint8_t { reject, below_dev };

struct ArchivePolicy {
  SetIdPolicy set_id = SetIdPolicy::reject;
  AbsoluteLinkPolicy absolute_links = AbsoluteLinkPolicy::reject;
  DevicePolicy devices = DevicePolicy::reject;
};

struct ArchiveOptions {
  ArchiveLimits limits{};
  ArchivePolicy policy{};
  /// Every hundred entries: how far into the archive, and what was found so far.
  std::function<void(std::uint64_t position, std::uint64_t archive_bytes, std::uint64_t entries)> progress{};
  std::stop_token stop{};
};

/// What an archive holds, or what of it was written.
struct ArchiveStats {
  std::uint64_t entries = 0;
  std::uint64_t files = 0;  ///< regular ones
  std::uint64_t bytes = 0;  ///< of their content
  /// What could not be kept as the archive has it, one sentence each (at most ten): owners without
  /// privileges, attributes that the file system does not have.
  std::vector<std::string> notes{};
};

/// Why an archive is hostile; the name is the detail "violation" of the error.
enum class Violation : std::uint8_t {
  parent_path,  ///< ".." in a name
  absolute_path,
  symlink_absolute,
  symlink_escape,
  hardlink_escape,  ///< to something outside, or that the archive has not written itself
  set_id,
  device_node,
  too_many_entries,
  file_too_large,
  total_too_large,
  bad_size,         ///< negative, overflowing, or not what the archive has
  through_symlink,  ///< an entry below a name that is a symbolic link
  duplicate_name,   ///< a name that replaces something of another kind
  case_collision,
  bad_name,  ///< empty, too long, or with a NUL
  unsupported_entry,
};

/// Errors of both: `archive_corrupt` (what, at which entry; compressed input is named as such),
/// `archive_hostile` with the details "violation" and "path", `cancelled`, `store_io` where the file cannot
/// be read.
Result<ArchiveStats> scan(const std::string& path, const ArchiveOptions& options);

/// More errors: `disk_full`, `pool_full` where writing fails with EIO on a full pool is the caller's to tell;
/// `volume_failed` where the place cannot be written. `root` must be empty but for "lost+found".
Result<ArchiveStats> extract(const std::string& path, int root, const ArchiveOptions& options);

struct Layout {
  bool strict =
      false;  ///< rootfs/etc, rootfs/usr and rootfs/var must be there; otherwise their lack is noted
  bool direct = false;  ///< the archive's root is the root file system itself
};

/// Checks an unpacked tree: rootfs/ is there, and nothing at or below its etc and usr is writable for
/// everybody. Returns what is unusual but allowed. Errors: `layout_invalid`, `volume_failed`.
Result<std::vector<std::string>> verify_layout(int root, const Layout& layout);

}  // namespace pawl::images
