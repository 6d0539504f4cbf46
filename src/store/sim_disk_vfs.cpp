// SPDX-License-Identifier: Apache-2.0
// The functions that SQLite calls: each takes the disk's mutex, refuses dead handles, and leaves the rest to
// DiskState.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "pawl/assert.hpp"
#include "store/sim_disk_state.hpp"
#include "store/sqlite/connection.hpp"

namespace pawl::sim {

namespace {

/// The structure that SQLite allocates for an open file.
struct VfsFile {
  sqlite3_file base;
  Handle* handle;
};

Handle& handle_of(sqlite3_file* file) { return *reinterpret_cast<VfsFile*>(file)->handle; }
DiskState& disk_of(sqlite3_vfs* vfs) { return *static_cast<DiskState*>(vfs->pAppData); }

/// Runs `act(handle, lock)` under the disk's mutex, unless a crash has invalidated the handle.
template <class Act>
int while_alive(sqlite3_file* file, const Act& act) {
  Handle& handle = handle_of(file);
  DiskState::Lock lock(handle.disk->mutex);
  if (!handle.disk->is_alive(handle)) return SQLITE_IOERR;
  return act(handle, lock);
}

int close_file(sqlite3_file* file) {
  Handle& handle = handle_of(file);
  {
    const std::lock_guard lock(handle.disk->mutex);
    DiskState::close(handle);
  }
  // After the mutex, because this may destroy the disk's state.
  const std::unique_ptr<Handle> owner(&handle);
  return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* into, int bytes, sqlite3_int64 offset) {
  return while_alive(file, [&](Handle& handle, auto&) {
    return handle.disk->read(handle, static_cast<char*>(into), static_cast<std::size_t>(bytes),
                             static_cast<std::uint64_t>(offset));
  });
}

int write_file(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  return while_alive(file, [&](Handle& handle, auto&) {
    return handle.disk->write(handle, {static_cast<const char*>(from), static_cast<std::size_t>(bytes)},
                              static_cast<std::uint64_t>(offset));
  });
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  return while_alive(file, [&](Handle& handle, auto&) {
    return handle.disk->truncate(handle, static_cast<std::uint64_t>(size));
  });
}

int sync_file(sqlite3_file* file, int /*flags*/) {
  return while_alive(file,
                     [&](Handle& handle, DiskState::Lock& lock) { return handle.disk->sync(lock, handle); });
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return while_alive(file, [&](Handle& handle, auto&) {
    *size = static_cast<sqlite3_int64>(handle.inode->content.cached().size());
    return SQLITE_OK;
  });
}

int lock(sqlite3_file* file, int level) {
  return while_alive(file, [&](Handle& handle, auto&) { return lock_file(handle, level); });
}

int unlock(sqlite3_file* file, int level) {
  return while_alive(file, [&](Handle& handle, auto&) {
    handle.lock = std::min(handle.lock, level);
    return SQLITE_OK;
  });
}

int check_reserved_lock(sqlite3_file* file, int* reserved) {
  return while_alive(file, [&](Handle& handle, auto&) {
    *reserved = is_reserved(handle) ? 1 : 0;
    return SQLITE_OK;
  });
}

int control_file(sqlite3_file* file, int operation, void* argument) {
  return while_alive(file, [&](Handle& handle, auto&) {
    int* const value = static_cast<int*>(argument);  // in the cases below
    switch (operation) {
      case SQLITE_FCNTL_LOCKSTATE:
        *value = handle.lock;
        return SQLITE_OK;
      case SQLITE_FCNTL_PERSIST_WAL:
        if (*value >= 0) handle.keeps_wal = *value != 0;
        *value = handle.keeps_wal ? 1 : 0;
        return SQLITE_OK;
      case SQLITE_FCNTL_HAS_MOVED:
        *value = !handle.name.empty() && handle.disk->find(handle.name) != handle.inode ? 1 : 0;
        return SQLITE_OK;
      case sqlite::kSpaceLeft:
        return handle.disk->space_left(static_cast<sqlite3_int64*>(argument));
      default:
        return SQLITE_NOTFOUND;
    }
  });
}

// Both like SQLite's VFS for Unix: a torn write never changes bytes outside its range.
int sector_size(sqlite3_file* /*file*/) { return 4096; }
int device_characteristics(sqlite3_file* /*file*/) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int map_memory(sqlite3_file* file, int region, int bytes, int extend, void volatile** address) {
  *address = nullptr;
  return while_alive(file, [&](Handle& handle, auto&) {
    *address =
        map_region(handle, static_cast<std::size_t>(region), static_cast<std::size_t>(bytes), extend != 0);
    return SQLITE_OK;
  });
}

int lock_memory(sqlite3_file* file, int first, int count, int flags) {
  return while_alive(file, [&](Handle& handle, auto&) { return lock_slots(handle, first, count, flags); });
}

void memory_barrier(sqlite3_file* file) { const std::lock_guard lock(handle_of(file).disk->mutex); }

int unmap_memory(sqlite3_file* file, int /*removes*/) {
  Handle& handle = handle_of(file);
  const std::lock_guard lock(handle.disk->mutex);
  unmap_regions(handle);
  return SQLITE_OK;
}

// Version 2: shared memory, but no memory-mapped reads, which would bypass the faults.
constexpr sqlite3_io_methods kMethods{.iVersion = 2,
                                      .xClose = close_file,
                                      .xRead = read_file,
                                      .xWrite = write_file,
                                      .xTruncate = truncate_file,
                                      .xSync = sync_file,
                                      .xFileSize = file_size,
                                      .xLock = lock,
                                      .xUnlock = unlock,
                                      .xCheckReservedLock = check_reserved_lock,
                                      .xFileControl = control_file,
                                      .xSectorSize = sector_size,
                                      .xDeviceCharacteristics = device_characteristics,
                                      .xShmMap = map_memory,
                                      .xShmLock = lock_memory,
                                      .xShmBarrier = memory_barrier,
                                      .xShmUnmap = unmap_memory,
                                      .xFetch = nullptr,
                                      .xUnfetch = nullptr};

int open_file(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  DiskState& disk = disk_of(vfs);
  file->pMethods = nullptr;
  std::unique_ptr<Handle> handle;
  const std::lock_guard lock(disk.mutex);
  const int result = disk.open(name, flags, handle);
  if (result != SQLITE_OK) return result;
  if (out_flags != nullptr) *out_flags = flags;
  file->pMethods = &kMethods;
  reinterpret_cast<VfsFile*>(file)->handle = handle.release();
  return SQLITE_OK;
}

int remove_file(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  DiskState& disk = disk_of(vfs);
  DiskState::Lock lock(disk.mutex);
  return disk.remove(lock, name, (sync_directory & 1) != 0);
}

int access_file(sqlite3_vfs* vfs, const char* name, int flags, int* result) {
  DiskState& disk = disk_of(vfs);
  const std::lock_guard lock(disk.mutex);
  if (disk.off) return SQLITE_IOERR;
  const auto inode = disk.find(name);
  // As on Unix, an empty file does not count as existing: an empty journal is no journal.
  const bool counts = inode && (flags != SQLITE_ACCESS_EXISTS || !inode->content.cached().empty());
  *result = counts ? 1 : 0;
  return SQLITE_OK;
}

int full_name(sqlite3_vfs* /*vfs*/, const char* name, int room, char* full) {
  const std::size_t length = std::strlen(name);
  if (length >= static_cast<std::size_t>(room)) return SQLITE_CANTOPEN;
  std::memcpy(full, name, length + 1);
  return SQLITE_OK;
}

// SQLite takes its randomness from the default VFS; this function is never called, but must exist.
int randomness(sqlite3_vfs* /*vfs*/, int bytes, char* into) {
  std::memset(into, 0, static_cast<std::size_t>(bytes));
  return bytes;
}

// Sleeps for real, because a thread that waits for another one's lock does so.
int sleep_us(sqlite3_vfs* /*vfs*/, int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  return microseconds;
}

constexpr sqlite3_int64 kMillisecondsPerDay = 86'400'000;
constexpr sqlite3_int64 kNow = 2'451'544 * kMillisecondsPerDay + kMillisecondsPerDay / 2;  // 2000-01-01 00:00

int current_time_ms(sqlite3_vfs* /*vfs*/, sqlite3_int64* now) {
  *now = kNow;
  return SQLITE_OK;
}

int current_time(sqlite3_vfs* /*vfs*/, double* now) {
  *now = static_cast<double>(kNow) / static_cast<double>(kMillisecondsPerDay);
  return SQLITE_OK;
}

int last_error(sqlite3_vfs* /*vfs*/, int /*bytes*/, char* /*text*/) { return 0; }

}  // namespace

void register_vfs(DiskState& state) {
  // The address is unique among the existing disks and needs no shared counter.
  state.vfs_name = "pawl-sim-disk-" + std::to_string(reinterpret_cast<std::uintptr_t>(&state));
  state.vfs = {.iVersion = 2,
               .szOsFile = sizeof(VfsFile),
               .mxPathname = 512,
               .pNext = nullptr,
               .zName = state.vfs_name.c_str(),
               .pAppData = &state,
               .xOpen = open_file,
               .xDelete = remove_file,
               .xAccess = access_file,
               .xFullPathname = full_name,
               .xDlOpen = nullptr,
               .xDlError = nullptr,
               .xDlSym = nullptr,
               .xDlClose = nullptr,
               .xRandomness = randomness,
               .xSleep = sleep_us,
               .xCurrentTime = current_time,
               .xGetLastError = last_error,
               .xCurrentTimeInt64 = current_time_ms,
               .xSetSystemCall = nullptr,
               .xGetSystemCall = nullptr,
               .xNextSystemCall = nullptr};
  const int result = sqlite3_vfs_register(&state.vfs, 0);
  PAWL_ASSERT(result == SQLITE_OK, "SQLite accepts a VFS", result);
}

void unregister_vfs(DiskState& state) { sqlite3_vfs_unregister(&state.vfs); }

}  // namespace pawl::sim
