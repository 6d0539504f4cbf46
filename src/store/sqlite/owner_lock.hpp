// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One owner per store: a lock on the file `<path>.owner`, whose line says who holds it.
///
///     PAWL_TRY(auto lock, OwnerLock::take(path, vfs, now));

#include <memory>
#include <string>

#include "store/sqlite/connection.hpp"

namespace pawl::sqlite {

/// The lock is taken through the VFS, with the calls SQLite itself uses on a database: it works for every
/// VFS, and it refuses a second opener in the same process as well as one in another.
class OwnerLock {
 public:
  OwnerLock() = default;
  OwnerLock(OwnerLock&&) = default;
  OwnerLock& operator=(OwnerLock&&) = default;
  ~OwnerLock();

  /// Error: `store_locked`, with pid, host and since when of the owner.
  static Result<OwnerLock> take(const std::string& path, const std::string& vfs, Time now);

 private:
  struct File;
  struct Close {
    void operator()(File* file) const;
  };
  std::unique_ptr<File, Close> file_;
};

}  // namespace pawl::sqlite
