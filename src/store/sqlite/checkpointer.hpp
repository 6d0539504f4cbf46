// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Moves the WAL into the database file, on a connection of its own, and keeps the WAL bounded.
///
///     PAWL_CHECK(checkpointer.run());        // from a thread of its own, now and then
///     checkpointer.bound(wal_pages);         // by the owner after a commit

#include <cstdint>
#include <mutex>

#include "store/sqlite/connection.hpp"
#include "store/status.hpp"

namespace pawl::sqlite {

/// Thread-safe.
class Checkpointer {
 public:
  explicit Checkpointer(Status& status) : status_(status) {}
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  ~Checkpointer();

  Result<void> open(const SqliteOptions& options);

  /// As much as readers allow, without keeping anybody waiting.
  Result<void> run();

  /// Under constant writing a checkpoint never reaches the WAL's end, so that it never starts over. Beyond
  /// the limit the owner, who is between two commits, does what is left itself.
  Result<void> bound(std::int64_t wal_pages);

 private:
  Result<void> step(int mode);

  Status& status_;
  std::mutex mutex_;
  Database db_;
  std::int64_t next_attempt_ = 0;  ///< pages; used by the owner only
};

}  // namespace pawl::sqlite
