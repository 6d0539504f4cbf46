// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ownership of the store: the epoch in the shard's row fences old owners, and the lease tells other
/// processes that the owner is alive.
///
///     PAWL_CHECK(ownership.claim(db, facts));       // at opening: a new epoch, and a lease
///     PAWL_CHECK(ownership.reclaim(db, facts)); // after a lost connection: waits for its transaction
///     PAWL_CHECK(ownership.renew(listener));          // periodically
///     PAWL_CHECK(ownership.check());                // before serving data in memory

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "store/postgres/connection.hpp"
#include "store/postgres/schema.hpp"
#include "store/store.hpp"

namespace pawl::postgres {

/// Thread-safe.
class Ownership {
 public:
  Ownership(const PostgresOptions& options, const Names& names);

  /// Takes the store if it has no owner, if the owner's lease has expired, or if a takeover was requested.
  /// Waits for the lease of an owner whose connection is gone. Errors: `store_locked`, with process, host and
  /// start time of the owner; `store_diverged`.
  Result<void> claim(Connection& db, const ServerFacts& facts);

  /// Raises this owner's epoch. Afterwards no transaction that this owner began before can commit, and those
  /// that did are visible. Error: `store_fenced`.
  Result<void> reclaim(Connection& db, const ServerFacts& facts);

  /// Renews the lease. Error: `store_fenced`.
  Result<void> renew(Connection& db);

  /// Ends the lease, so that the next owner need not wait.
  void release(Connection& db);

  std::int64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  /// Timeline of the server on which the epoch was taken.
  std::int64_t timeline() const { return timeline_.load(std::memory_order_acquire); }

  /// Error: `store_fenced` if the lease has expired by this machine's clock. It may be renewed later.
  Result<void> check() const;

 private:
  struct Holder {
    std::int64_t epoch = 0;
    bool mine = false;
    bool alive = false;      ///< the lease has not expired
    bool connected = false;  ///< the recorded backend exists
    std::string pid;
    std::string host;
    std::string since;
    Duration left{};
  };
  Result<Holder> holder(Connection& db);
  void end_backend(Connection& db, std::int64_t epoch);
  /// False: another process was faster, or the owner has renewed its lease.
  Result<bool> raise(Connection& db, const Holder& seen, bool force, const ServerFacts& facts);

  const PostgresOptions& options_;
  const Names& names_;
  std::string owner_id_;  ///< distinguishes this owner from all others
  std::string host_;
  std::mutex mutex_;  ///< one claim or renewal at a time
  std::atomic<std::int64_t> epoch_ = 0;
  std::atomic<std::int64_t> timeline_ = 0;
  std::atomic<std::int64_t> valid_until_ = 0;  ///< by a clock that includes suspended time
};

}  // namespace pawl::postgres
