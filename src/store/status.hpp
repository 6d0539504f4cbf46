// SPDX-License-Identifier: Apache-2.0
#pragma once

/// State that the parts of an open store share: its facts, and whether a failed write has poisoned it.
///
///     PAWL_CHECK(status.usable());
///     status.committed(last, at);

#include <atomic>
#include <mutex>
#include <string>

#include "store/store.hpp"

namespace pawl {

/// Thread-safe.
class Status {
 public:
  void set(StoreInfo info);
  StoreInfo info() const;
  Seq last() const;

  /// Errors: `store_poisoned` with the first failure; `store_fenced` if that was the first failure.
  Result<void> usable() const;
  /// Additional error: `store_read_only` unless this is the owner.
  Result<void> writable() const;

  /// Refuses everything from now on: after a failed write or sync the contents of the disk are unknown.
  void poison(const Error& cause);
  bool poisoned() const { return poisoned_.load(std::memory_order_acquire); }

  void set_epoch(std::int64_t epoch);
  void committed(Seq last, Time at);
  void cut(Seq horizon);

 private:
  mutable std::mutex mutex_;
  StoreInfo info_;
  std::string cause_;
  bool fenced_ = false;
  std::atomic<bool> poisoned_ = false;
  std::atomic<bool> read_only_ = false;
};

}  // namespace pawl
