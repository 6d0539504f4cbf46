// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker that checks a file.
///
///     {"path": "/var/spool/export.csv", "must_exist": true, "max_age": "1h", "min_bytes": 1,
///      "max_bytes": 1000000, "observe_content": true}

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::workers {

struct FileDesired {
  Required<std::string> path{};  ///< absolute
  bool must_exist = true;        ///< false: it may be missing, but is checked if it exists
  std::optional<Duration> max_age{};
  std::optional<std::uint64_t> min_bytes{};
  std::optional<std::uint64_t> max_bytes{};
  /// Set to false for a file that changes all the time: every change of size or time is stored.
  bool observe_content = true;
};

enum class FileVerdict : std::uint8_t {
  fine,
  missing,
  too_old,
  too_small,
  too_large,
  not_a_file,
  unreadable
};

struct FileObserved {
  FileVerdict verdict = FileVerdict::fine;
  bool exists = false;
  std::optional<std::uint64_t> bytes{};
  std::optional<Time> modified{};
  std::optional<std::string> sha256{};  ///< of files up to 1 MiB
  std::string error{};                  ///< if it is unreadable
};

/// The last SHA-256 and the file attributes it belongs to. Thread-safe.
struct FileTools {
  struct Stamp {
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Sum {
    std::string path;
    Stamp stamp;
    std::string sha256;
  };
  std::mutex mutex;
  std::optional<Sum> last{};
  std::uint64_t sums_made = 0;
};

struct FileWatch : Worker<FileObserved, FileDesired, FileTools> {
  static constexpr std::string_view kType = "file_watch";

  struct Stopped : phase::Stopped {};
  struct Checking : phase::Starting {};
  struct Healthy : phase::Running {};
  struct Degraded : phase::Degraded {};
  using States = pawl::States<Stopped, Checking, Healthy, Degraded>;

  static Next<Go<Checking>> next(Stopped, const Snapshot& now);
  static Next<Go<Healthy>, Go<Degraded>> next(Checking, const Snapshot& now);
  static Next<Go<Degraded>, Stay> next(Healthy, const Snapshot& now);
  static Next<Go<Healthy>, Stay> next(Degraded, const Snapshot& now);
  static Next<Go<Stopped>> stop(Checking, const Snapshot& now);
  static Next<Go<Stopped>> stop(Healthy, const Snapshot& now);
  static Next<Go<Stopped>> stop(Degraded, const Snapshot& now);

  /// Error: `spec_invalid`.
  static Result<FileDesired> derive(FileDesired read);
  static Result<FileObserved> collect(FileTools& tools, const FileDesired& desired,
                                      const CollectContext& context);
};

void add_file_watch(WorkerTypes& types);

}  // namespace pawl::workers
