// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "store/sim_disk_state.hpp"

namespace pawl::sim {

namespace {

/// The strongest lock that another handle of the file holds.
int strongest_other(const Handle& handle) {
  int strongest = SQLITE_LOCK_NONE;
  for (const Handle* other : handle.inode->handles) {
    if (other != &handle) strongest = std::max(strongest, other->lock);
  }
  return strongest;
}

}  // namespace

int lock_file(Handle& handle, int level) {
  if (handle.lock >= level) return SQLITE_OK;
  const int others = strongest_other(handle);
  switch (level) {
    case SQLITE_LOCK_SHARED:
      if (others >= SQLITE_LOCK_PENDING) return SQLITE_BUSY;
      break;
    case SQLITE_LOCK_RESERVED:
      if (others >= SQLITE_LOCK_RESERVED) return SQLITE_BUSY;
      break;
    default:
      if (others >= SQLITE_LOCK_RESERVED) return SQLITE_BUSY;
      // PENDING refuses new readers while the current ones finish.
      handle.lock = SQLITE_LOCK_PENDING;
      if (others >= SQLITE_LOCK_SHARED) return SQLITE_BUSY;
      break;
  }
  handle.lock = level;
  return SQLITE_OK;
}

bool is_reserved(const Handle& handle) {
  return std::max(handle.lock, strongest_other(handle)) >= SQLITE_LOCK_RESERVED;
}

int lock_slots(Handle& handle, int first, int count, int flags) {
  if (!handle.memory) return SQLITE_IOERR_SHMLOCK;
  const unsigned slots = ((1U << count) - 1U) << first;
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    handle.shared_slots &= ~slots;
    handle.exclusive_slots &= ~slots;
    return SQLITE_OK;
  }
  unsigned shared = 0;
  unsigned exclusive = 0;
  for (const Handle* other : handle.memory->users) {
    if (other == &handle) continue;
    shared |= other->shared_slots;
    exclusive |= other->exclusive_slots;
  }
  const bool wants_all = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  if ((exclusive & slots) != 0 || (wants_all && (shared & slots) != 0)) return SQLITE_BUSY;
  (wants_all ? handle.exclusive_slots : handle.shared_slots) |= slots;
  return SQLITE_OK;
}

void* map_region(Handle& handle, std::size_t region, std::size_t bytes, bool extend) {
  if (!handle.memory) {
    if (!handle.inode->memory) handle.inode->memory = std::make_shared<SharedMemory>();
    handle.memory = handle.inode->memory;
    handle.memory->users.push_back(&handle);
  }
  auto& regions = handle.memory->regions;
  if (regions.size() <= region && !extend) return nullptr;
  while (regions.size() <= region) {
    regions.push_back(std::make_unique<std::uint64_t[]>(bytes / sizeof(std::uint64_t)));
  }
  return regions[region].get();
}

void unmap_regions(Handle& handle) {
  if (!handle.memory) return;
  std::erase(handle.memory->users, &handle);
  // The last handle removes the memory: the next one recovers it from the WAL.
  if (handle.memory->users.empty() && handle.inode->memory == handle.memory) handle.inode->memory.reset();
  handle.memory.reset();
  handle.shared_slots = 0;
  handle.exclusive_slots = 0;
}

}  // namespace pawl::sim
