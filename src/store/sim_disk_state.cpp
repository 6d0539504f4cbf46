// SPDX-License-Identifier: Apache-2.0
#include "store/sim_disk_state.hpp"

#include <algorithm>
#include <cstring>

namespace pawl::sim {

namespace {

int result_of(const DiskFault& fault, int io_error) {
  return fault.with == Failure::full ? SQLITE_FULL : io_error;
}

}  // namespace

std::optional<DiskFault> DiskState::take_fault(Operation operation, std::string_view name) {
  std::optional<DiskFault> striking;
  for (DiskFault& fault : faults) {
    if (fault.on != operation || !name.ends_with(fault.suffix)) continue;
    if (--fault.nth == 0) striking = fault;
  }
  std::erase_if(faults, [](const DiskFault& fault) { return fault.nth == 0; });
  return striking;
}

std::shared_ptr<Inode> DiskState::find(std::string_view name) const {
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

void DiskState::rename(const std::string& name, std::shared_ptr<Inode> inode) {
  if (inode) {
    names.insert_or_assign(name, inode);
  } else {
    names.erase(name);
  }
  name_changes_.push_back({.name = name, .inode = std::move(inode)});
}

int DiskState::open(const char* name, int flags, std::unique_ptr<Handle>& opened) {
  if (off) return SQLITE_IOERR;
  const std::string text = name == nullptr ? "" : name;
  if (const auto fault = take_fault(Operation::open, text)) return result_of(*fault, SQLITE_CANTOPEN);
  auto inode = name == nullptr ? std::make_shared<Inode>() : find(text);
  const bool creates = (flags & SQLITE_OPEN_CREATE) != 0;
  if (inode ? (name != nullptr && creates && (flags & SQLITE_OPEN_EXCLUSIVE) != 0) : !creates) {
    return SQLITE_CANTOPEN;
  }
  if (!inode) {
    inode = std::make_shared<Inode>();
    rename(text, inode);
  }
  constexpr int kJournals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
  opened = std::make_unique<Handle>();
  opened->disk = shared_from_this();
  opened->inode = inode;
  opened->name = text;
  opened->epoch = epoch_;
  opened->syncs_directory = creates && (flags & kJournals) != 0;
  opened->removes_on_close = name != nullptr && (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  inode->handles.push_back(opened.get());
  return SQLITE_OK;
}

void DiskState::close(Handle& handle) {
  DiskState& disk = *handle.disk;
  unmap_regions(handle);
  std::erase(handle.inode->handles, &handle);
  if (handle.removes_on_close && disk.is_alive(handle) && disk.find(handle.name) == handle.inode) {
    disk.rename(handle.name, nullptr);
  }
}

int DiskState::remove(Lock& lock, const std::string& name, bool syncs_directory) {
  if (off) return SQLITE_IOERR;
  if (const auto fault = take_fault(Operation::remove, name)) return result_of(*fault, SQLITE_IOERR_DELETE);
  if (!find(name)) return SQLITE_IOERR_DELETE_NOENT;
  rename(name, nullptr);
  return syncs_directory ? sync_directory(lock, name) : SQLITE_OK;
}

int DiskState::read(const Handle& handle, char* into, std::size_t bytes, std::uint64_t offset) {
  if (const auto fault = take_fault(Operation::read, handle.name))
    return result_of(*fault, SQLITE_IOERR_READ);
  const std::string& content = handle.inode->content.cached();
  const std::size_t found = offset >= content.size() ? 0 : std::min(bytes, content.size() - offset);
  std::memcpy(into, content.data() + (found == 0 ? 0 : offset), found);
  std::memset(into + found, 0, bytes - found);  // SQLite relies on zeros after a short read
  return found == bytes ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

std::uint64_t DiskState::used() const {
  std::uint64_t sum = 0;
  for (const auto& [name, inode] : names) sum += inode->content.cached().size();
  return sum;
}

int DiskState::space_left(sqlite3_int64* bytes) const {
  if (!capacity) return SQLITE_NOTFOUND;
  *bytes = static_cast<sqlite3_int64>(*capacity - std::min(*capacity, used()));
  return SQLITE_OK;
}

int DiskState::write(Handle& handle, std::string_view bytes, std::uint64_t offset) {
  ++writes;
  FileContent& content = handle.inode->content;
  if (const auto fault = take_fault(Operation::write, handle.name)) {
    content.write(offset, bytes.substr(0, random_.below(bytes.size() + 1)));
    return result_of(*fault, SQLITE_IOERR_WRITE);
  }
  const std::uint64_t size = content.cached().size();
  const std::uint64_t end = offset + bytes.size();
  if (capacity && !handle.name.empty() && end > size) {
    const std::uint64_t in_use = used();
    const std::uint64_t reach = size + (*capacity > in_use ? *capacity - in_use : 0);
    if (end > reach) {
      if (reach > offset) content.write(offset, bytes.substr(0, reach - offset));
      return SQLITE_FULL;
    }
  }
  content.write(offset, bytes);
  return SQLITE_OK;
}

int DiskState::truncate(Handle& handle, std::uint64_t size) {
  if (const auto fault = take_fault(Operation::truncate, handle.name)) {
    return result_of(*fault, SQLITE_IOERR_TRUNCATE);
  }
  handle.inode->content.truncate(size);
  return SQLITE_OK;
}

bool DiskState::report(Lock& lock, const SyncPoint& point) {
  if (!hook) return true;
  const auto call = hook;
  const std::uint64_t epoch = epoch_;
  lock.unlock();
  call(point);
  lock.lock();
  return !off && epoch == epoch_;
}

int DiskState::pass_sync(Lock& lock, const std::string& name, bool directory,
                         const std::function<int()>& effect) {
  const std::size_t nth = ++syncs;
  const auto cuts = [&](Moment moment) {
    if (!cut || cut->at != nth || cut->moment != moment) return false;
    const Unsynced unsynced = cut->unsynced;
    cut.reset();
    cut_power(unsynced);
    off = true;
    return true;
  };
  SyncPoint point{.nth = nth, .moment = Moment::before, .name = name, .directory = directory};
  if (!report(lock, point) || cuts(Moment::before)) return SQLITE_IOERR;
  if (const int result = effect(); result != SQLITE_OK) return result;
  point.moment = Moment::after;
  return cuts(Moment::after) || !report(lock, point) ? SQLITE_IOERR : SQLITE_OK;
}

int DiskState::sync_directory(Lock& lock, const std::string& name) {
  return pass_sync(lock, name, true, [&] {
    if (const auto fault = take_fault(Operation::sync_directory, name)) {
      return result_of(*fault, SQLITE_IOERR_DIR_FSYNC);
    }
    sync_names(directory_of(name));
    return SQLITE_OK;
  });
}

int DiskState::sync(Lock& lock, Handle& handle) {
  const int result = pass_sync(lock, handle.name, false, [&] {
    FileContent& content = handle.inode->content;
    if (const auto fault = take_fault(Operation::sync, handle.name)) {
      if (fault->failed_sync == FailedSync::loses_writes) content.settle(Unsynced::random, random_);
      return result_of(*fault, SQLITE_IOERR_FSYNC);
    }
    content.sync();
    return SQLITE_OK;
  });
  if (result != SQLITE_OK || !handle.syncs_directory) return result;
  handle.syncs_directory = false;
  // SQLite's own VFS for Unix ignores the result of this one, so a fault here only keeps the name undurable.
  sync_directory(lock, handle.name);
  return is_alive(handle) ? SQLITE_OK : SQLITE_IOERR;
}

}  // namespace pawl::sim
