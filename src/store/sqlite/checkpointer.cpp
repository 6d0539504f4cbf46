// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/checkpointer.hpp"

#include "store/sqlite/schema.hpp"

namespace pawl::sqlite {
namespace {

/// 64 MiB in pages of 4 KiB.
constexpr std::int64_t kWalPages = 16384;

}  // namespace

Result<void> Checkpointer::open(const SqliteOptions& options) {
  PAWL_TRY(db_, Database::open(options.path, SQLITE_OPEN_READWRITE, options.vfs));
  PAWL_CHECK(prepare_connection(db_, Access::owner));
  sqlite3_busy_timeout(db_.get(), 0);
  // A connection notices that the file is in WAL mode only when it reads it.
  PAWL_CHECK(db_.integer("SELECT count(*) FROM pawl_meta"));
  next_attempt_ = kWalPages;
  return {};
}

Checkpointer::~Checkpointer() {
  if (db_ && status_.poisoned()) db_.leave_wal(true);
}

Result<void> Checkpointer::run() {
  PAWL_CHECK(status_.writable());
  const std::scoped_lock lock(mutex_);
  return step(SQLITE_CHECKPOINT_PASSIVE);
}

Result<void> Checkpointer::bound(std::int64_t wal_pages) {
  if (wal_pages < kWalPages) {
    next_attempt_ = kWalPages;
    return {};
  }
  if (wal_pages < next_attempt_) return {};
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  // A reader of an old snapshot prevents the WAL from starting over; do not try at every commit then.
  next_attempt_ = wal_pages + kWalPages / 8;
  return step(SQLITE_CHECKPOINT_RESTART);
}

Result<void> Checkpointer::step(int mode) {
  const int code = sqlite3_wal_checkpoint_v2(db_.get(), "main", mode, nullptr, nullptr);
  if (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED) return {};
  auto error = db_.error(code, "moving the WAL into the database");
  // The WAL still has everything, but after a failed sync the disk cannot be trusted.
  if (error.code() != Code::disk_full) status_.poison(error);
  return fail(std::move(error));
}

}  // namespace pawl::sqlite
