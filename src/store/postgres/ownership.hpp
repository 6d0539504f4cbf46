// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Who owns the store: the epoch in the shard's row, which fences, and the lease beside it, which tells
/// others that the owner lives.
///
///     PAWL_CHECK(ownership.claim(db, facts));       // at opening: a new epoch, and a lease
///     PAWL_CHECK(ownership.claim_again(db, facts)); // after a lost connection: waits out what it had sent
///     PAWL_CHECK(ownership.renew(keeper));          // now and then
///     PAWL_CHECK(ownership.still());                // before serving what is in memory

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

  /// Takes the store: from nobody, from an owner whose lease has ended, or explicitly from a living one. An
  /// owner that is gone but whose lease still runs is waited for. Error: `store_locked`, with pid, host and
  /// since when of the owner; `store_diverged`.
  Result<void> claim(Connection& db, const ServerFacts& facts);

  /// Raises the own epoch. When it returns, no transaction that this owner began before can commit any more,
  /// and those that did are visible. Error: `store_fenced`.
  Result<void> claim_again(Connection& db, const ServerFacts& facts);

  /// Prolongs the lease. Error: `store_fenced`.
  Result<void> renew(Connection& db);

  /// Ends the lease, so that the next owner need not wait.
  void release(Connection& db);

  std::int64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  /// Of the server that gave the epoch.
  std::int64_t timeline() const { return timeline_.load(std::memory_order_acquire); }

  /// Error: `store_fenced`, once the lease has run out here. It may come back to life.
  Result<void> still() const;

 private:
  struct Holder {
    std::int64_t epoch = 0;
    bool mine = false;
    bool alive = false;      ///< the lease runs
    bool connected = false;  ///< the recorded backend is there
    std::string pid;
    std::string host;
    std::string since;
    Duration left{};
  };
  Result<Holder> holder(Connection& db);
  void end_backend(Connection& db, std::int64_t epoch);
  /// False: somebody else was faster, or the owner came back to life.
  Result<bool> raise(Connection& db, const Holder& seen, bool force, const ServerFacts& facts);

  const PostgresOptions& options_;
  const Names& names_;
  std::string me_;  ///< tells this owner from every other one
  std::string host_;
  std::mutex mutex_;  ///< one claim or renewal at a time
  std::atomic<std::int64_t> epoch_ = 0;
  std::atomic<std::int64_t> timeline_ = 0;
  std::atomic<std::int64_t> valid_until_ = 0;  ///< by the clock that goes on while the machine sleeps
};

}  // namespace pawl::postgres
