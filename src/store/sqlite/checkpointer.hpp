// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Moves the WAL into the database file on its own connection, and limits the size of the WAL.
///
///     PAWL_CHECK(checkpointer.run());        // periodically, on its own thread
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

  /// Moves as much as readers allow, without blocking readers or the owner.
  Result<void> run();

  /// Under constant writes a checkpoint never reaches the end of the WAL, so the WAL keeps growing. Beyond
  /// the limit the owner, between two commits, does the rest itself.
  Result<void> bound(std::int64_t wal_pages);

 private:
  Result<void> step(int mode);

  Status& status_;
  std::mutex mutex_;
  Database db_;
  std::int64_t next_attempt_ = 0;  ///< pages; used by the owner only
};

}  // namespace pawl::sqlite
