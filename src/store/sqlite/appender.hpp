// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Appends entries of the open batch to the log, many at once, and on another thread where one offers to
/// help: while the owner decides the next entries, the helper writes those before, and what goes beside them.
///
///     appender.add(entry, seq, machine);           // the owner, again and again
///     if (appender.wants_help()) …                 // some thread may call help()
///     PAWL_CHECK(appender.finish());               // everything added is in the table
///
/// Nothing is durable, or seen by others, before the owner commits the transaction. Once entries
/// were added the helper may use the connection, so the owner calls `finish`, `settle` or `drop` before it
/// does.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "store/sqlite/connection.hpp"
#include "store/sqlite/pending_entries.hpp"
#include "store/store.hpp"

namespace pawl::sqlite {

/// `help` and `wants_help` from any thread, the others from the owner's.
class Appender {
 public:
  explicit Appender(PendingEntries& table) : table_(table) {}
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  using Beside = std::function<Result<void>(std::size_t entries)>;

  /// To be destroyed before the connection. `beside` writes what goes with so many entries, and is called by
  /// whoever appends them.
  Result<void> open(Database& db, Beside beside);

  void add(const EntryView& entry, Seq seq, std::int64_t machine);
  Result<void> finish();
  /// More is waiting than is worth keeping in memory: `finish` is due.
  bool full() const { return full_; }
  /// Takes the connection back. What failed is told by `finish`.
  void settle();
  /// Forgets what was added.
  void drop();

  /// There is enough to append, and nobody is at it.
  bool wants_help() const { return wanted_.load(std::memory_order_relaxed); }
  void help();

 private:
  /// A helper takes so many at a time.
  static constexpr std::size_t kRows = 128;
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMostParts = 32;  // 4,096 rows, or 32 MiB
  static constexpr std::size_t kMostSpare = 8;

  Result<void> append(const EntryRows& rows);
  void append_sealed(std::unique_lock<std::mutex>& lock);

  PendingEntries& table_;
  Statement insert_;
  Beside beside_;
  EntryRows open_;  // being filled by the owner
  bool full_ = false;

  std::atomic<bool> wanted_ = false;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<EntryRows> sealed_;  // full, in order
  std::vector<EntryRows> spare_;  // empty, for their memory
  bool busy_ = false;             // somebody appends, outside of the lock
  std::optional<Error> error_;    // until dropped
};

}  // namespace pawl::sqlite
