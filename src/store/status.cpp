// SPDX-License-Identifier: Apache-2.0
#include "store/status.hpp"

#include <algorithm>
#include <utility>

namespace pawl {

void Status::set(StoreInfo info) {
  const std::scoped_lock lock(mutex_);
  read_only_.store(info.read_only, std::memory_order_relaxed);
  info_ = std::move(info);
}

StoreInfo Status::info() const {
  const std::scoped_lock lock(mutex_);
  return info_;
}

Seq Status::last() const {
  const std::scoped_lock lock(mutex_);
  return info_.last;
}

Result<void> Status::usable() const {
  if (!poisoned()) return {};
  const std::scoped_lock lock(mutex_);
  if (fenced_) return fail(Code::store_fenced, "another owner has taken the store over: " + cause_);
  return fail(Code::store_poisoned, "an earlier write failed, so the store must be opened again: " + cause_);
}

Result<void> Status::writable() const {
  if (poisoned()) return usable();
  if (!read_only_.load(std::memory_order_relaxed)) return {};
  return fail(Code::store_read_only, "the store was opened read-only");
}

void Status::poison(const Error& cause) {
  const std::scoped_lock lock(mutex_);
  if (cause_.empty()) {
    cause_ = cause.to_string();
    fenced_ = cause.code() == Code::store_fenced;
  }
  poisoned_.store(true, std::memory_order_release);
}

void Status::set_epoch(std::int64_t epoch) {
  const std::scoped_lock lock(mutex_);
  info_.epoch = epoch;
}

void Status::committed(Seq last, Time at) {
  const std::scoped_lock lock(mutex_);
  info_.last = std::max(info_.last, last);
  info_.last_at = std::max(info_.last_at, at);
}

void Status::cut(Seq horizon) {
  const std::scoped_lock lock(mutex_);
  info_.horizon = std::max(info_.horizon, horizon);
}

}  // namespace pawl
