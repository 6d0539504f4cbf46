// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading archives that may be hostile: a scan that writes nothing, and an extraction that writes nothing
/// outside its root.
///
///     PAWL_TRY(const auto found, scan("alpine.tar", {}));
///     PAWL_TRY(const auto written, extract("alpine.tar", root, {}));  // `root`: a descriptor of a directory
///
/// Both apply the same rules, so that what passed the scan is refused by the extraction only for what the
/// place lacks. Read are tar archives: v7, ustar, pax and GNU, plain or compressed with gzip, zstd or xz,
/// which is known by the content. Headers that readers of tar archives understand in different ways (a size
/// on a link, a name given twice) are refused.
///
/// All functions here may be called from any thread; calls share nothing.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::images {

/// What is at a limit passes.
struct ArchiveLimits {
  /// Also of the directories that are made because entries are below them.
  std::uint64_t entries = 100'000;
  std::uint64_t file_bytes = std::uint64_t{1} << 30;  ///< holes of sparse files included, here and below
  std::uint64_t total_bytes = std::uint64_t{10} << 30;
  /// Of a compressed archive, unpacked: with all headers.
  std::uint64_t archive_bytes = std::uint64_t{10} << 30;
};

/// What to do with a regular file that is setuid or setgid.
enum class SetIdPolicy : std::uint8_t { reject, strip, allow };
/// What to do with a symbolic link to an absolute path. `in_root` takes it as seen from the root file system:
/// rootfs/ for a link below rootfs/, the archive's root for any other. The link keeps its text.
enum class AbsoluteLinkPolicy : std::uint8_t { reject, in_root };
/// What to do with device nodes. `below_dev` takes those below dev/ and rootfs/dev/.
enum class DevicePolicy : std::uint8_t { reject, below_dev };
/// What to do with names in one directory that differ only in the case of ASCII letters. Some Linux trees
/// have such names on purpose (terminfo, headers of the kernel); most others mean one to hide the other.
enum class CasePolicy : std::uint8_t { reject, allow };
/// All of them together: `strict` rejects, `distribution` takes what the root file systems of distributions
/// have.
enum class PolicyPreset : std::uint8_t { strict, distribution };

struct ArchivePolicy {
  SetIdPolicy set_id = SetIdPolicy::reject;
  AbsoluteLinkPolicy absolute_links = AbsoluteLinkPolicy::reject;
  DevicePolicy devices = DevicePolicy::reject;
  CasePolicy case_collisions = CasePolicy::reject;
};
ArchivePolicy policy_of(PolicyPreset preset) noexcept;

struct ArchiveOptions {
  ArchiveLimits limits{};
  ArchivePolicy policy{};
  /// Every hundred entries and at the end: how far into the archive, and what was found so far.
  std::function<void(std::uint64_t position, std::uint64_t archive_bytes, std::uint64_t entries)> progress{};
  std::stop_token stop{};  ///< looked at before each entry and each mebibyte of content
  /// Of `extract`: the SHA-256 of the archive, taken while it is read, so that what was unpacked is what was
  /// hashed. Empty: anything.
  std::string sha256{};
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
  symlink_escape,   ///< to something above rootfs/, for a link below it, or above the archive's root
  hardlink_escape,  ///< to something outside, or that is no regular file which the archive has had before
  set_id,
  device_node,
  too_many_entries,
  file_too_large,
  total_too_large,
  bad_size,         ///< negative, overflowing, on an entry without content, or of a header too large
  through_symlink,  ///< an entry below a name that is a symbolic link
  duplicate_name,   ///< a name twice, unless it is a directory both times
  case_collision,
  bad_name,  ///< empty, too long, too deep, or with a NUL
  unsupported_entry,
};
std::string_view name(Violation violation) noexcept;

/// Errors of both: `archive_corrupt` (what, at which entry; the detail "violation" is "malformed",
/// "truncated", "compressed" or "checksum"),
/// `archive_hostile` with the details "violation" and "path", `cancelled`, `store_io` if the file cannot
/// be read. An archive that ends between two entries is whole even if the two empty blocks are missing, as
/// for GNU tar; one that breaks off inside an entry is corrupt.
Result<ArchiveStats> scan(const std::string& path, const ArchiveOptions& options);

/// Writes below `root`, a descriptor of a directory that is empty but for "lost+found", and syncs its file
/// system. Modes, modification times, hard links, extended attributes and holes are as in the archive, owners
/// (and with them setuid bits that the policy allows, and access control lists) where the process is root. A
/// second entry of a directory updates the first; missing parents get mode 0755. What was written before an
/// error stays: discard the whole volume.
///
/// More errors: `disk_full`; `volume_failed` if the place cannot be written, is not empty, or the kernel
/// has no openat2 (EIO on a full pool is the caller's to tell).
Result<ArchiveStats> extract(const std::string& path, int root, const ArchiveOptions& options);

struct Layout {
  bool strict =
      false;  ///< rootfs/etc, rootfs/usr and rootfs/var must be there; otherwise their lack is noted
  bool direct = false;  ///< the archive's root is the root file system itself
  bool either = false;  ///< `direct` if there is no rootfs/, but etc/ and usr/
};

/// Checks an unpacked tree: rootfs/ is there, and no directory at or below its etc and usr is writable for
/// everybody. Where etc, usr or var is a symbolic link, what it leads to within the root file system counts;
/// no other links are followed. Returns what is unusual but allowed. Errors: `layout_invalid`,
/// `volume_failed`.
Result<std::vector<std::string>> verify_layout(int root, const Layout& layout);

}  // namespace pawl::images
