// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One owner per store: a lock on the database file itself, and one on the file `<path>.owner`, whose line
/// says who holds them.
///
///     PAWL_TRY(auto lock, OwnerLock::take(path, vfs));
///     …                                                  // the file is in WAL mode now
///     PAWL_CHECK(lock.take_database(now));

#include <memory>
#include <string>

#include "store/sqlite/connection.hpp"

namespace pawl::sqlite {

/// The locks are taken through the VFS, with the calls SQLite itself uses on a database: that works for every
/// VFS, refuses a second opener in the same process as well as one in another, and never closes a file of the
/// database beside SQLite, which would end SQLite's own locks.
///
/// On the database it is RESERVED. In WAL mode no writer takes that: commits lock the WAL's index. Whoever
/// wants to leave WAL mode or to tidy up as the last one needs more than RESERVED, and is refused. So the
/// lock begins once the file is in WAL mode, and `release_database` comes before the last connection is
/// closed.
///
/// The lock on `<path>.owner` covers the time before and after that. Somebody may remove that file: what
/// counts is the lock on the database.
class OwnerLock {
 public:
  OwnerLock() = default;
  OwnerLock(OwnerLock&&) = default;
  OwnerLock& operator=(OwnerLock&&) = default;
  ~OwnerLock();

  /// Locks `<path>.owner`. Error: `store_locked`, with pid, host and since when of the owner.
  static Result<OwnerLock> take(const std::string& path, const std::string& vfs);
  /// Locks the database, and writes down who has done so. Error: `store_locked`.
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
  bool made_ = false;  ///< there was no `<path>.owner` before
  Handle owner_;
  Handle database_;
};

}  // namespace pawl::sqlite
