// SPDX-License-Identifier: Apache-2.0
#include "pawl/sim_disk.hpp"

#include <fmt/format.h>

#include "pawl/assert.hpp"
#include "store/sim_disk_state.hpp"

namespace pawl::sim {

Disk::Disk(std::uint64_t seed) : state_(std::make_shared<DiskState>(seed)) { register_vfs(*state_); }

Disk::~Disk() {
  unregister_vfs(*state_);
  const std::lock_guard lock(state_->mutex);
  state_->off = true;
  state_->end_epoch();
}

const std::string& Disk::vfs_name() const noexcept { return state_->vfs_name; }

void Disk::power_cut(Unsynced unsynced) {
  const std::lock_guard lock(state_->mutex);
  state_->cut_power(unsynced);
  state_->off = false;
}

void Disk::process_kill() {
  const std::lock_guard lock(state_->mutex);
  state_->end_epoch();
}

void Disk::cut_at_sync(std::size_t nth, Moment moment, Unsynced unsynced) {
  PAWL_ASSERT(nth > 0, "the next sync is number 1");
  const std::lock_guard lock(state_->mutex);
  state_->cut = {.at = state_->syncs + nth, .moment = moment, .unsynced = unsynced};
}

bool Disk::is_off() const {
  const std::lock_guard lock(state_->mutex);
  return state_->off;
}

void Disk::power_on() {
  const std::lock_guard lock(state_->mutex);
  state_->off = false;
  state_->cut.reset();
}

void Disk::fail_next(DiskFault fault) {
  PAWL_ASSERT(fault.nth > 0, "the next operation is number 1");
  const std::lock_guard lock(state_->mutex);
  state_->faults.push_back(std::move(fault));
}

void Disk::clear_faults() {
  const std::lock_guard lock(state_->mutex);
  state_->faults.clear();
}

void Disk::set_capacity(std::optional<std::uint64_t> bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->capacity = bytes;
}

std::size_t Disk::syncs() const {
  const std::lock_guard lock(state_->mutex);
  return state_->syncs;
}

std::size_t Disk::writes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->writes;
}

void Disk::on_sync(std::function<void(const SyncPoint&)> hook) {
  const std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

std::vector<std::string> Disk::files() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> found;
  for (const auto& [name, inode] : state_->names) found.push_back(name);
  return found;
}

std::optional<std::string> Disk::read_file(std::string_view name, View view) const {
  const std::lock_guard lock(state_->mutex);
  const auto& names = view == View::cached ? state_->names : state_->durable_names;
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  const FileContent& content = found->second->content;
  return view == View::cached ? content.cached() : content.durable();
}

Result<void> Disk::flip(std::string_view name, std::uint64_t offset, std::uint8_t bits) {
  const std::lock_guard lock(state_->mutex);
  const auto inode = state_->find(name);
  if (!inode) return fail(Code::invalid_argument, fmt::format("the disk has no file {}", name));
  const std::size_t size = inode->content.cached().size();
  if (offset >= size) {
    return fail(Code::invalid_argument,
                fmt::format("byte {} of {} is beyond its end; it has {} bytes", offset, name, size));
  }
  inode->content.flip(offset, bits);
  return {};
}

DiskImage Disk::snapshot() const {
  const std::lock_guard lock(state_->mutex);
  return DiskImage(state_->copy());
}

void Disk::restore(const DiskImage& image) {
  const std::lock_guard lock(state_->mutex);
  state_->replace(*image.content_);
  state_->off = false;
}

}  // namespace pawl::sim
