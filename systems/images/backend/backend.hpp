// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where images are unpacked and snapshots are taken: a pool of volumes.
///
///     PAWL_TRY(const auto backend, open_backend({.kind = BackendKind::dir, .root = "pool"}));
///     PAWL_CHECK(backend->attach());
///     const Volume origin{.id = 1, .name = "img-1", .bytes = 10_GiB, .marker = uuid};
///     PAWL_CHECK(backend->create(origin));
///     PAWL_TRY(const auto place, backend->mount(origin));         // unpack there
///     PAWL_CHECK(backend->unmount(origin));
///     PAWL_CHECK(backend->snapshot(origin, copy));
///     PAWL_TRY(const auto path, backend->activate(copy));
///
/// Every call may be repeated after a crash at any point of it: it finds what is there and goes on. What
/// exists is always found by asking the pool, never by what was remembered. The caller gives out the ids
/// (from 1 to 2^24 - 1) and writes them down before it uses them: what an interrupted call has left under an
/// id is cleared by the next one that has this id. One process at a time changes a pool.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/log.hpp"
#include "pawl/time.hpp"

namespace pawl::images {

inline constexpr std::uint32_t kLastVolumeId = (1U << 24U) - 1;

struct Volume {
  std::uint32_t id = 0;
  std::string name;         ///< letters, digits, "-" and "_", at most 127 bytes
  std::uint64_t bytes = 0;  ///< its size; how much it may hold; a multiple of 4096
  std::string marker;       ///< a UUID in lower case, written into it, by which it is recognised
  std::string pool{};       ///< the further pool that has it; empty: the default one. Back ends ignore it
};

struct FoundVolume {
  std::uint32_t id = 0;
  std::string name{};    ///< empty where the pool does not know it
  std::string marker{};  ///< likewise
  bool complete = true;  ///< false: its making was interrupted, or a write to it failed: make it anew
  bool active = false;
  bool mounted = false;
  std::string path{};  ///< of what is active
};

/// Whether what was found is this volume, as far as the pool can tell.
inline bool is_volume(const FoundVolume& found, const Volume& volume) {
  return found.marker.empty() || found.marker == volume.marker;
}

struct VolumeUsage {
  std::uint32_t id = 0;
  std::uint64_t exclusive = 0;  ///< bytes that removing it would give back
  std::uint64_t shared = 0;     ///< bytes that other volumes hold, too
};

struct PoolUsage {
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;
  std::optional<std::uint64_t> metadata_bytes{};
  std::optional<std::uint64_t> metadata_used{};
  bool writable = true;
  bool full = false;                    ///< it says itself that nothing more goes in
  std::vector<std::string> problems{};  ///< what keeps it from working, one sentence each
};

/// Thread-safe; calls that change the pool take turns where the kernel needs that. Errors of every call:
/// `backend_unavailable` (no pool, no privileges, read-only; what would help), `volume_failed` for what may
/// go away by itself.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  /// Makes the pool if absent, and reactivates it after a restart of the machine. Never removes
  /// or formats what is there.
  virtual Result<void> attach() = 0;
  /// Deactivates everything and gives back what keeps devices busy; volumes stay. Error: `volume_busy` where
  /// something is mounted.
  virtual Result<void> detach() = 0;
  virtual Result<PoolUsage> pool() = 0;
  /// Makes the pool so large while it is in use. Error: `invalid_argument` if it is larger already.
  virtual Result<void> extend(std::uint64_t bytes) = 0;

  /// An empty file system. Errors: `volume_exists` if the id is taken by another marker, `pool_full`.
  virtual Result<void> create(const Volume& volume) = 0;
  /// Where its files are, to write. Error: `volume_missing`.
  virtual Result<std::string> mount(const Volume& volume) = 0;
  /// Makes what was written durable, unmounts and deactivates. Errors: `volume_missing`, `volume_busy` where
  /// it is in use, `pool_full` or `volume_failed` if not everything could be written. The volume is
  /// incomplete then, and every repeat says so until it is made anew.
  virtual Result<void> unmount(const Volume& volume) = 0;
  /// `copy` is at least as large as `origin`. Errors: `volume_busy` while the origin is mounted,
  /// `volume_missing` for the origin, `volume_exists`, `pool_full`.
  virtual Result<void> snapshot(const Volume& origin, const Volume& copy) = 0;
  /// Makes it usable and says where: a block device, or a directory. Error: `volume_missing`.
  virtual Result<std::string> activate(const Volume& volume) = 0;
  /// No-op if absent. Error: `volume_busy`.
  virtual Result<void> deactivate(const Volume& volume) = 0;
  /// Unmounts, deactivates and deletes it; no-op if absent. Error: `volume_busy`.
  virtual Result<void> remove(std::uint32_t id) = 0;

  /// Nullopt if the id is absent or belongs to another marker.
  virtual Result<std::optional<FoundVolume>> find(const Volume& volume) = 0;
  /// Everything in the pool, also what is not active.
  virtual Result<std::vector<FoundVolume>> list() = 0;
  virtual Result<std::vector<VolumeUsage>> usage() = 0;
};

enum class BackendKind : std::uint8_t { dir, reflink, btrfs, dmthin };

struct BackendOptions {
  BackendKind kind = BackendKind::dir;
  std::string root;                                    ///< a directory of its own: pool files, mount points
  std::string pool = "pawl";                           ///< the name of a device mapper pool
  std::uint64_t pool_bytes = std::uint64_t{20} << 30;  ///< of a pool that has to be made; files are sparse
  std::string data_device{};  ///< of dmthin; empty: a loop device on a file in the root
  std::string metadata_device{};
  Duration busy_timeout = std::chrono::seconds(10);  ///< how long to wait for a device to be free
  Logger log{};
};

/// Opens nothing yet: `attach` does. Error: `invalid_argument`.
Result<std::unique_ptr<Backend>> open_backend(BackendOptions options);

/// Which kinds can work here, best first; `dir` is always among them. The reason is there for the others.
struct BackendChoice {
  BackendKind kind = BackendKind::dir;
  bool available = false;
  std::string reason{};
};
std::vector<BackendChoice> available_backends();

}  // namespace pawl::images
