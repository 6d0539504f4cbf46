// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ensures one owner per store: a lock on the database file itself, and one on the file `<path>.owner`, which
/// contains a line that names the owner.
///
///     PAWL_TRY(auto lock, OwnerLock::take(path, vfs));
///     …                                                  // the file is in WAL mode now
///     PAWL_CHECK(lock.take_database(now));

#include <memory>
#include <string>

#include "store/sqlite/connection.hpp"

namespace pawl::sqlite {

/// The locks are taken through the VFS with the same calls that SQLite uses: this works for every VFS,
/// refuses a second opener in the same process as well as in another one, and never closes a file of the
/// database behind SQLite's back, which would release SQLite's own locks.
///
/// The lock on the database is RESERVED. In WAL mode no writer takes it: commits lock the index of the WAL.
/// To leave WAL mode, or to clean up when the last connection closes, SQLite needs more than RESERVED and is
/// refused. So the lock is taken once the file is in WAL mode, and `release_database` must be called before
/// the last connection is closed.
///
/// The lock on `<path>.owner` covers the time before and after that. The file may be removed by others; the
/// lock on the database is what protects the store.
class OwnerLock {
 public:
  OwnerLock() = default;
  OwnerLock(OwnerLock&&) = default;
  OwnerLock& operator=(OwnerLock&&) = default;
  ~OwnerLock();

  /// Locks `<path>.owner`. Error: `store_locked`, with process, host and start time of the owner.
  static Result<OwnerLock> take(const std::string& path, const std::string& vfs);
  /// Locks the database and writes the owner's line. Error: `store_locked`.
  Result<void> take_database(Time now);
  void release_database() { database_.reset(); }

 private:
  struct File;
  struct Close {
    void operator()(File* file) const;
  };
  using Handle = std::unique_ptr<File, Close>;

  static Result<Handle> open(sqlite3_vfs& vfs, const std::string& name);
  static int reserve(File& file);
  static std::string line_of(File& file);

  std::string path_;
  sqlite3_vfs* vfs_ = nullptr;
  bool made_ = false;  ///< `<path>.owner` did not exist before
  Handle owner_;
  Handle database_;
};

}  // namespace pawl::sqlite
