// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What all flows of images use: sources, back end, directory of archives, limits and policy.
///
///     ImageServices services(options);
///     PAWL_CHECK(services.open());
///     PAWL_TRY(const auto fetched, services.source(name).fetch(name, services.archive_of(image), …));

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "images/archive/archive.hpp"
#include "images/backend/backend.hpp"
#include "images/source/source.hpp"
#include "images/tables.hpp"
#include "pawl/error.hpp"
#include "pawl/log.hpp"
#include "pawl/retry.hpp"
#include "pawl/time.hpp"

namespace pawl::images {

/// A pool in addition to the default one.
struct FurtherPool {
  std::string name;
  BackendKind kind = BackendKind::dir;
  std::string root;
  bool operator==(const FurtherPool&) const = default;
};

struct ImagesOptions {
  std::string directory;  ///< holds the archives, and the pool where `backend.root` is empty
  std::string bucket{};   ///< where a request names none
  S3Options s3{};
  std::vector<std::string> file_directories{};  ///< below which file:// sources are allowed
  BackendOptions backend{};                     ///< of the default pool, whose name is `backend.pool`
  std::vector<FurtherPool> pools{};
  std::uint64_t volume_bytes = std::uint64_t{10} << 30;
  std::uint64_t image_bytes = std::uint64_t{10} << 30;  ///< the largest archive
  ArchiveLimits limits{};
  ArchivePolicy policy{};
  Layout layout{};
  std::uint32_t downloads = 5;  ///< at a time
  std::uint32_t unpacking = 2;
  Duration download_timeout = std::chrono::minutes(5);
  /// An object store may be away for a minute: with the shortest delays, the last retry begins after 62 s.
  RetryPolicy download_retry{.retries = 5,
                             .first = std::chrono::seconds(4),
                             .factor = 2.0,
                             .cap = std::chrono::seconds(64),
                             .jitter = Jitter::equal};
  Duration unpack_timeout = std::chrono::minutes(30);
  /// Above this part of the pool nothing new is unpacked; a little below it is reported.
  double full = 0.95;
  Logger log{};
};

inline constexpr std::uint64_t kMostVolumeBytes = std::uint64_t{100} << 30;

/// A multiple of 4 KiB, from 16 MiB, below which no file system with a journal fits, to 100 GiB. Error:
/// `invalid_argument`.
Result<void> check_volume_size(std::int64_t bytes);

/// Whether the key names a file: "file:///srv/images/alpine.tar".
bool is_file(std::string_view key);

/// What the first step of each flow counts separately: errors of files and of the pool (`storage`), and all
/// others, which are those of the tables and of other runs.
enum class ErrorClass : std::uint8_t { other, storage };

enum class PoolState : std::uint8_t {
  not_attached,   ///< not needed yet
  attach_failed,  ///< tried again by the next run that needs it
  attached,
  detaching,  ///< no run gets it any more
  detached,   ///< on request, until it is set up again
};

/// Thread-safe once it is open.
class ImageServices {
 public:
  explicit ImageServices(ImagesOptions options);
  /// For tests: replaces the source and the back end that the options name.
  ImageServices(ImagesOptions options, std::unique_ptr<Source> objects, std::unique_ptr<Backend> backend);

  /// Makes the directories. Errors: `config_invalid` if others can change them (`make_safe_directory`),
  /// `invalid_argument`, `volume_failed`.
  Result<void> open();

  const ImagesOptions& options() const { return options_; }
  const Logger& log() const { return options_.log; }

  /// The bucket and the key as the source takes them. Error: `invalid_argument`.
  Result<ObjectName> object(std::string_view bucket, std::string_view key) const;
  Source& source(const ObjectName& name) const { return name.bucket.empty() ? *files_ : *objects_; }
  // A pool is named as rows have it: empty is the default one. Errors of what takes a name:
  // `backend_unavailable` if it is not configured (any more).

  /// The configured pools, the default one first.
  std::vector<std::string> pools() const;
  /// The name that people give it.
  std::string pool_title(const std::string& pool) const;
  const BackendOptions& pool_options(const std::string& pool) const;
  /// The back end with its pool attached, which it attaches if need be.
  Result<Backend*> pool(const std::string& name = {});
  /// The same for readers, which change nothing. Error: `backend_unavailable` if the pool is not attached,
  /// with the reason.
  Result<Backend*> attached_pool(const std::string& name = {}) const;
  PoolState pool_state(const std::string& name = {}) const;
  /// Attaches the pool, also if it is attached already: its devices may be gone since.
  Result<Backend*> attach_pool(const std::string& name = {});
  /// Gives the pool's devices back, after which `pool` fails until `attach_pool` or the next start.
  /// `check_unused` is called when `pool` fails already, so that no new run uses the pool meanwhile; if it
  /// fails, the pool stays as it was. Errors: those of `check_unused`; `volume_busy` if something is mounted;
  /// those of `Backend::detach`.
  Result<void> detach_pool(const std::string& name, const std::function<Result<void>()>& check_unused);
  /// The pool that a request means by its title; empty is the default one. Error: `invalid_argument`.
  Result<std::string> named_pool(std::string_view pool_name) const;
  /// The pool for an image: the one that has it already, else the one that is meant. Errors: those of
  /// `named_pool`; `volume_exists` if another one has it.
  Result<std::string> pool_for(const Query& query, std::string_view image_id,
                               std::string_view pool_name) const;

  std::string archive_of(std::string_view image_id) const;
  std::string archives() const;
  ArchiveOptions archive_options(std::stop_token stop) const;

  /// An id that no volume has or is about to have. Error: `pool_full` if all have been used.
  Result<std::uint32_t> allocate_volume_id(const Query& query);

  /// The checksum of a file, which is cached until the file changes. The file gets a time of its own
  /// to know that by. Errors: those of `sha256_of_file`.
  Result<std::string> checksum_of(const std::string& path, const std::stop_token& stop);
  /// Whether this process has found that the file has this checksum, and the file has not changed since.
  bool has_checksum(const std::string& path, std::string_view sha256) const;

  /// Runs whose unpacking has timed out; kept in memory.
  void mark_overdue(const std::string& run);
  bool is_overdue(const std::string& run) const;
  void forget_overdue(const std::string& run);

  /// Counts an error of a run's first step, and says how many of its class there were since the counts were
  /// forgotten.
  std::uint32_t count_error(const std::string& run, ErrorClass error_class);
  void forget_errors(const std::string& run);

  /// Logs a security violation. An error without a violation of its own is reported by its code.
  void report_violation(std::string_view image_id, std::string_view key, const Error& error) const;

 private:
  ImagesOptions options_;
  std::unique_ptr<Source> objects_;
  std::unique_ptr<Source> files_;
  struct Pool {
    BackendOptions options{};
    std::unique_ptr<Backend> backend{};
    std::mutex changing{};  ///< one attaches or detaches at a time; taken before `mutex_`
    PoolState state = PoolState::not_attached;
    std::optional<Error> attach_error{};  ///< if attaching failed
  };
  Result<Pool*> known_pool(const std::string& name);
  Result<const Pool*> known_pool(const std::string& name) const;
  std::map<std::string, Pool> pools_;  ///< by their names; which there are does not change
  mutable std::mutex mutex_;
  std::uint32_t last_id_ = 0;
  std::set<std::string> overdue_;
  std::map<std::string, std::map<ErrorClass, std::uint32_t>> errors_;  // by run
  struct CachedChecksum {
    std::string stamp;
    std::string sha256;
  };
  std::map<std::string, CachedChecksum> checksums_;  // by path
};

/// The bytes in `path`. Errors: `source_missing` if it is not there, `store_io`, `cancelled`.
Result<std::string> sha256_of_file(const std::string& path, const std::stop_token& stop);

/// A random version 4 UUID.
std::string make_marker();

}  // namespace pawl::images
