// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A disk for tests: a SQLite VFS in memory that at a power cut behaves in any way a real disk may behave,
/// reproducibly for the same seed.
///
///     pawl::sim::Disk disk{seed};
///     auto store = pawl::open_sqlite({.path = "pawl.db", .vfs = disk.vfs_name()});
///     …                                                   // write, and note what was acknowledged
///     disk.power_cut(pawl::sim::Unsynced::random);        // everything open is dead now
///     auto again = pawl::open_sqlite({.path = "pawl.db", .vfs = disk.vfs_name()});
///     …                                                   // what was acknowledged must be there
///
/// What is modelled and what is not: docs/testing.md, "Power loss".

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::sim {

class DiskState;
struct DiskContent;

/// What happens at a power cut to writes, truncations and names that were never synced. Synced changes always
/// survive.
enum class Unsynced : std::uint8_t {
  keep_none,  ///< all of it is lost
  keep_all,   ///< all of it has reached the disk
  random,     ///< the seed decides: any of it, in any order, writes torn at sectors of 512 bytes
};

/// Relative to a sync: `before` it takes effect, or `after`.
enum class Moment : std::uint8_t { before, after };

/// What a fault can hit.
enum class Operation : std::uint8_t {
  open,
  read,
  write,
  truncate,
  sync,            ///< of a file
  sync_directory,  ///< of the directory of a file; the fault's suffix is compared with the file's name
  remove,
};

/// How the operation fails: like a broken device, or like a full one.
enum class Failure : std::uint8_t { io, full };

/// What happens to a file's unsynced writes when its sync fails.
enum class FailedSync : std::uint8_t {
  loses_writes,  ///< as on Linux: reads still show them, but no later sync makes them durable
  keeps_writes,  ///< the next sync makes them durable
};

/// A fault to inject.
struct DiskFault {
  Operation on = Operation::sync;
  std::size_t nth = 1;   ///< which matching operation from now on fails; 1 is the next one
  std::string suffix{};  ///< only files whose name ends with this, such as "-wal"; empty: any file
  Failure with = Failure::io;
  FailedSync failed_sync = FailedSync::loses_writes;
};

/// One side of one sync, as `Disk::on_sync` reports it.
struct SyncPoint {
  std::size_t nth = 0;  ///< counted like `Disk::syncs`: the first is 1
  Moment moment = Moment::before;
  std::string name;        ///< the file
  bool directory = false;  ///< the sync of the file's directory rather than of the file
};

/// Which content of a file: the one that reads see, or the one after a power cut with `Unsynced::keep_none`.
enum class View : std::uint8_t { cached, durable };

/// The whole content of a disk at one moment, including unsynced changes. Immutable: cheap to copy, safe to
/// use concurrently.
class DiskImage {
 private:
  friend class Disk;
  explicit DiskImage(std::shared_ptr<const DiskContent> content) : content_(std::move(content)) {}
  std::shared_ptr<const DiskContent> content_;
};

/// The disk. Thread-safe: connections on several threads may use it while another one cuts the power.
///
/// Disks are independent of each other. A file is identified by the name with which it was opened; names are
/// not normalized, and directories exist as soon as they are named. SQLite's clock is constant on this disk
/// ("now" is 2000-01-01), so that what it stores depends on the seed alone.
class Disk {
 public:
  /// Registers the VFS. O(1), some microseconds.
  explicit Disk(std::uint64_t seed);

  /// Unregisters the VFS. Connections that are still open are invalid from then on, as after a power cut:
  /// every call on them fails; closing them is safe.
  ~Disk();

  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  /// The name of the VFS with which to open databases; unique while this disk exists.
  const std::string& vfs_name() const noexcept;

  // Crashes.

  /// Cuts the power and turns it on again. Open handles become invalid: further calls fail with SQLITE_IOERR.
  /// Locks and shared memory are gone; files contain the durable content and what `unsynced` keeps.
  void power_cut(Unsynced unsynced);

  /// Kills the process (SIGKILL): open handles become invalid, locks and shared memory are gone, but written
  /// data stays, and unsynced data stays unsynced.
  void process_kill();

  /// Cuts the power at the nth sync from now on (1 is the next one), just before or just after it takes
  /// effect; its caller gets an error in both cases. Afterwards every call fails until `power_on`. Replaces
  /// an earlier call.
  void cut_at_sync(std::size_t nth, Moment moment, Unsynced unsynced);

  /// Whether `cut_at_sync` has cut the power.
  bool is_off() const;

  /// Turns the power on after `cut_at_sync` and removes a cut that has not happened yet.
  void power_on();

  // Faults.

  /// Makes one later operation fail. Faults add up; each fails one operation. A failing write writes a part
  /// of its data; a failing sync does what the fault's `failed_sync` says; other failing operations change
  /// nothing.
  void fail_next(DiskFault fault);

  /// Removes the faults that have not failed an operation yet.
  void clear_faults();

  /// Limits the bytes of all files together. A write that needs more writes what fits and fails with
  /// SQLITE_FULL; nullopt removes the limit. Temporary files do not count.
  void set_capacity(std::optional<std::uint64_t> bytes);

  // Observation.

  /// Syncs begun so far, of files and of directories.
  std::size_t syncs() const;

  /// Writes begun so far.
  std::size_t writes() const;

  /// Sets a hook, called on the syncing thread just before and just after each sync takes effect, without a
  /// lock held: it may call any method, including `power_cut`. Not called after a sync that failed. Replaces
  /// an earlier hook. Syncs happen until the last connection is closed; what the hook uses must exist until
  /// then.
  void on_sync(std::function<void(const SyncPoint&)> hook);

  /// The names of all files, sorted, as a process sees them.
  std::vector<std::string> files() const;

  /// A file's bytes; nothing if the file does not exist.
  std::optional<std::string> read_file(std::string_view name, View view = View::cached) const;

  // Damage and forks.

  /// Inverts `bits` of one byte, on the disk and in the cache, like a decayed sector. A pending write to that
  /// byte repairs it when it is synced. Error: `invalid_argument` if the file has no such byte.
  Result<void> flip(std::string_view name, std::uint64_t offset, std::uint8_t bits = 1);

  /// The content at this moment. Together with `restore` it forks a run: take an image at each sync, and try
  /// the power cut on each of them later. O(size of the content).
  DiskImage snapshot() const;

  /// Replaces the content by that of this or another disk. Open handles become invalid; the power is on;
  /// random choices, faults and counters continue.
  void restore(const DiskImage& image);

 private:
  std::shared_ptr<DiskState> state_;
};

}  // namespace pawl::sim
