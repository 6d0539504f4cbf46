// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The simulated disk behind its SQLite VFS: names, files, open handles, faults and crashes.
///
/// Names are a directory's content and become durable when the directory is synced, not when the file is.
/// When that happens follows SQLite's own VFS for Unix: the first sync of a handle opened to create a
/// journal or a WAL also syncs the directory, and so does a deletion that is asked to. SQLite never syncs the
/// directory for the database file itself; its name becomes durable together with that of its first journal.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>

#include "store/sim_disk_content.hpp"

namespace pawl::sim {

struct Inode;

/// The WAL index that the connections to one database share. Lives until its last handle is closed, so that
/// connections which a crash has cut off do not read freed memory.
struct SharedMemory {
  std::vector<std::unique_ptr<std::uint64_t[]>> regions;
  std::vector<struct Handle*> users;
};

/// One open file. It is alive while its epoch is the current one: each crash begins a new epoch.
struct Handle {
  std::shared_ptr<DiskState> disk;
  std::shared_ptr<Inode> inode;
  std::string name;  ///< empty for a temporary file
  std::uint64_t epoch = 0;
  bool syncs_directory = false;  ///< with its next sync
  bool removes_on_close = false;
  bool keeps_wal = false;  ///< SQLITE_FCNTL_PERSIST_WAL
  int lock = SQLITE_LOCK_NONE;
  std::shared_ptr<SharedMemory> memory;
  unsigned shared_slots = 0;  ///< bit set of the WAL index locks it holds
  unsigned exclusive_slots = 0;
};

/// A file, independent of its name. A deleted file exists while it is open or its deletion is not durable.
struct Inode {
  FileContent content;
  std::vector<Handle*> handles;
  std::shared_ptr<SharedMemory> memory;
};

// The rules of file locks and of WAL index locks among the handles of one file (sim_disk_locks.cpp). They
// return SQLite's result codes. The caller holds the disk's mutex.
int lock_file(Handle& handle, int level);
bool is_reserved(const Handle& handle);
int lock_slots(Handle& handle, int first, int count, int flags);
/// The region's address; nullptr if it does not exist and `extend` is false.
void* map_region(Handle& handle, std::size_t region, std::size_t bytes, bool extend);
void unmap_regions(Handle& handle);

/// The part of a name before the last slash.
std::string_view directory_of(std::string_view name);

/// A change of a directory that is not durable: the name now refers to this file, or to none.
struct NameChange {
  std::string name;
  std::shared_ptr<Inode> inode;
};

/// All methods require `mutex` to be held; those that take the lock release it while the hook runs.
class DiskState : public std::enable_shared_from_this<DiskState> {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit DiskState(std::uint64_t seed) : random_(seed) {}

  bool is_alive(const Handle& handle) const { return !off && handle.epoch == epoch_; }

  // Called by SQLite; return its result codes.
  int open(const char* name, int flags, std::unique_ptr<Handle>& opened);
  static void close(Handle& handle);
  int remove(Lock& lock, const std::string& name, bool sync_directory);
  int read(const Handle& handle, char* into, std::size_t bytes, std::uint64_t offset);
  int write(Handle& handle, std::string_view bytes, std::uint64_t offset);
  int truncate(Handle& handle, std::uint64_t size);
  int sync(Lock& lock, Handle& handle);
  std::shared_ptr<Inode> find(std::string_view name) const;
  int space_left(sqlite3_int64* bytes) const;

  // Called by tests.
  void cut_power(Unsynced unsynced);
  void end_epoch();
  std::shared_ptr<const DiskContent> copy() const;
  void replace(const DiskContent& content);

  mutable std::mutex mutex;
  sqlite3_vfs vfs{};
  std::string vfs_name;
  bool off = false;
  std::size_t syncs = 0;
  std::size_t writes = 0;
  std::vector<DiskFault> faults;
  std::optional<std::uint64_t> capacity;
  std::function<void(const SyncPoint&)> hook;
  struct Cut {
    std::size_t at = 0;  ///< compared with `syncs`
    Moment moment = Moment::before;
    Unsynced unsynced = Unsynced::random;
  };
  std::optional<Cut> cut;
  std::map<std::string, std::shared_ptr<Inode>, std::less<>> names;
  std::map<std::string, std::shared_ptr<Inode>, std::less<>> durable_names;

 private:
  std::optional<DiskFault> take_fault(Operation operation, std::string_view name);
  void rename(const std::string& name, std::shared_ptr<Inode> inode);
  void settle_names(Unsynced unsynced);
  void sync_names(std::string_view directory);
  std::uint64_t used() const;
  /// Performs one sync; `effect` applies it to the disk or returns the result code of its failure.
  int pass_sync(Lock& lock, const std::string& name, bool directory, const std::function<int()>& effect);
  int sync_directory(Lock& lock, const std::string& name);
  bool report(Lock& lock, const SyncPoint& point);

  Random random_;
  std::uint64_t epoch_ = 0;
  std::vector<NameChange> name_changes_;
};

/// A deep copy of a disk. Files are numbered, because one may have a cached and a durable name.
struct DiskContent {
  std::vector<FileContent> files;
  std::map<std::string, std::size_t, std::less<>> names;
  std::map<std::string, std::size_t, std::less<>> durable_names;
  std::vector<std::pair<std::string, std::optional<std::size_t>>> name_changes;
};

/// Fills in the functions of `state.vfs` and registers it with SQLite; the second function unregisters it.
void register_vfs(DiskState& state);
void unregister_vfs(DiskState& state);

}  // namespace pawl::sim
