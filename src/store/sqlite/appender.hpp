// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Appends entries of the open batch to the log in bulk, optionally on a helper thread: while the owner
/// decides the next entries, the helper writes the previous ones and the head rows that go with them.
///
///     appender.add(entry, seq, machine);           // by the owner
///     if (appender.wants_help()) …                 // another thread may call help()
///     PAWL_CHECK(appender.finish());               // everything added is in the table
///
/// Nothing is durable or visible to others before the owner commits the transaction. Once entries are added,
/// the helper may use the connection, so the owner must call `finish`, `settle` or `drop` before it uses the
/// connection itself.

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

/// `help` and `wants_help` are thread-safe; the other calls are for the owner's thread.
class Appender {
 public:
  explicit Appender(PendingEntries& table) : table_(table) {}
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  using Beside = std::function<Result<void>(std::size_t entries)>;

  /// Must be destroyed before the connection. `beside` writes the head rows that go with so many entries; the
  /// appending thread calls it.
  Result<void> open(Database& db, Beside beside);

  void add(const EntryView& entry, Seq seq, std::int64_t machine);
  Result<void> finish();
  /// Whether so much is waiting that `finish` should be called, to limit memory.
  bool full() const { return full_; }
  /// Takes the connection back from the helper. A failure is reported by `finish`.
  void settle();
  /// Drops the entries that were added.
  void drop();

  /// Whether there is enough to append and no thread is appending.
  bool wants_help() const { return wanted_.load(std::memory_order_relaxed); }
  void help();

 private:
  /// Number of parts that a helper takes at a time.
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
  bool busy_ = false;             // a thread appends, without the lock
  std::optional<Error> error_;    // until dropped
};

}  // namespace pawl::sqlite
