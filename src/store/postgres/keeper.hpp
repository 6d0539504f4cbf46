// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A thread with a connection of its own that listens: it prolongs the owner's lease, hears of a new owner at
/// once, and wakes those who wait for entries. Notifications make it fast, polling makes it sure.
///
///     keeper.start();
///     PAWL_TRY(const bool there, keeper.wait(after, most));

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "store/postgres/connection.hpp"
#include "store/postgres/ownership.hpp"
#include "store/status.hpp"

namespace pawl::postgres {

/// Thread-safe.
class Keeper {
 public:
  Keeper(const PostgresOptions& options, const Address& address, const Names& names, Status& status,
         Ownership& ownership)
      : options_(options), address_(address), names_(names), status_(status), ownership_(ownership) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() { stop(); }

  /// Does nothing where it runs already.
  Result<void> start();
  void stop();

  /// Whether there is an entry after this one, now or within the time.
  Result<bool> wait(Seq after, Duration most);
  /// The owner has committed.
  void committed(Seq last);

 private:
  void run(const std::stop_token& stop);
  Result<void> connect();
  /// One turn: renewing or polling where it is due, then waiting for the socket.
  Result<void> turn();
  void hear();
  void learn(Seq last);
  Result<void> poll_log();

  const PostgresOptions& options_;
  const Address& address_;
  const Names& names_;
  Status& status_;
  Ownership& ownership_;

  std::mutex start_mutex_;
  std::mutex mutex_;
  std::condition_variable heard_;
  Seq newest_ = 0;
  int waiting_ = 0;

  Connection db_;
  int wake_ = -1;  ///< an eventfd that ends a wait for the socket
  std::chrono::steady_clock::time_point due_;
  std::jthread thread_;
};

}  // namespace pawl::postgres
