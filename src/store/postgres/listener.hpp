// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A thread with its own connection that listens for notifications: it renews the owner's lease, notices a
/// new owner immediately, and wakes callers that wait for entries. It also polls, in case a notification is
/// lost.
///
///     listener.start();
///     PAWL_TRY(const bool there, listener.wait(after, most));

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
class Listener {
 public:
  Listener(const PostgresOptions& options, const Address& address, const Names& names, Status& status,
           Ownership& ownership)
      : options_(options), address_(address), names_(names), status_(status), ownership_(ownership) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { stop(); }

  /// No-op if the thread is running.
  Result<void> start();
  void stop();

  /// Waits at most `most` for an entry after `after`; returns whether there is one.
  Result<bool> wait(Seq after, Duration most);
  /// Called after each commit of the owner.
  void committed(Seq last);

 private:
  void run(const std::stop_token& stop);
  Result<void> connect();
  /// Renews or polls if due, then waits for the socket.
  Result<void> run_once();
  void read_notifications();
  void set_newest(Seq last);
  Result<void> poll_log();

  const PostgresOptions& options_;
  const Address& address_;
  const Names& names_;
  Status& status_;
  Ownership& ownership_;

  std::mutex start_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Seq newest_ = 0;
  int waiting_ = 0;

  Connection db_;
  int wake_ = -1;  ///< an eventfd that ends a wait for the socket
  std::chrono::steady_clock::time_point due_;
  std::jthread thread_;
};

}  // namespace pawl::postgres
