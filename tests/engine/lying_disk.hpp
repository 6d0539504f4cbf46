// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A VFS on top of another one whose syncs succeed without effect, like SQLite's `synchronous=OFF`: shows
/// that the power-loss tests detect it.

#include <sqlite3.h>

#include <string>

namespace pawl::test {

/// Registered during its lifetime. At most one exists at a time.
class LyingVfs {
 public:
  explicit LyingVfs(const std::string& base) : name_(base + "-lying"), vfs_(*sqlite3_vfs_find(base.c_str())) {
    vfs_.zName = name_.c_str();
    vfs_.pNext = nullptr;
    real_open() = vfs_.xOpen;
    vfs_.xOpen = open;
    sqlite3_vfs_register(&vfs_, 0);
  }
  LyingVfs(const LyingVfs&) = delete;
  LyingVfs& operator=(const LyingVfs&) = delete;
  ~LyingVfs() { sqlite3_vfs_unregister(&vfs_); }

  const std::string& name() const { return name_; }

 private:
  using Open = int (*)(sqlite3_vfs*, sqlite3_filename, sqlite3_file*, int, int*);

  static Open& real_open() {
    static Open open = nullptr;
    return open;
  }
  static sqlite3_io_methods& methods() {
    static sqlite3_io_methods methods{};
    return methods;
  }
  static int open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
    const int code = real_open()(vfs, name, file, flags, out);
    if (file->pMethods == nullptr) return code;
    methods() = *file->pMethods;
    methods().xSync = [](sqlite3_file*, int) { return SQLITE_OK; };
    file->pMethods = &methods();
    return code;
  }

  std::string name_;
  sqlite3_vfs vfs_;
};

}  // namespace pawl::test
