// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The writing side of the SQLite store: the open batch, the append to the log, heads written later.
///
///     PAWL_TRY(const auto seq, writer.apply(write));
///     PAWL_CHECK(writer.commit());

#include <array>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "store/dirty_heads.hpp"
#include "store/sqlite/appender.hpp"
#include "store/sqlite/application_sql.hpp"
#include "store/sqlite/checkpointer.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/schema.hpp"
#include "store/status.hpp"

namespace pawl::sqlite {

/// For one thread at a time unless noted otherwise.
class Writer {
 public:
  Writer(Status& status, Checkpointer& checkpointer, const SqliteOptions& options)
      : status_(status), checkpointer_(checkpointer), options_(options) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// `next` is the first number that this owner may use; the table of heads is up to date up to `flushed`.
  Result<void> open(Database db, Seq next, Seq flushed);
  /// Drops an open batch and writes the heads in memory, so that the next opening need not replay.
  Result<void> close();

  Result<Seq> apply(const Write& write);
  Result<void> put(std::span<const Ephemeral> values);
  Result<void> commit();
  void discard();
  Result<void> execute(std::span<const Sql> statements);
  /// Writes missing heads from their newest entries, in one durable transaction.
  Result<void> rebuild_heads(std::span<const MissingHead> missing);
  /// Approximate number of heads.
  void expect_rows(std::int64_t rows) { rows_ = rows; }

  /// Whether the calling thread has opened the batch. Thread-safe.
  bool batch_is_mine() const { return batch_thread_.load() == std::this_thread::get_id(); }
  Database& database() { return db_; }
  bool in_batch() const { return in_batch_; }

  // Appending on a helper thread; see `Appender`.
  bool wants_help() const { return appender_.wants_help(); }
  void help() { appender_.help(); }
  /// Takes the connection back from the helper.
  void settle() { appender_.settle(); }

  /// Writes every head, then runs `work` in its own transaction, between batches.
  template <class Work>
  Result<void> between_batches(Work work);
  /// Sets a value of `pawl_meta` in the open transaction.
  Result<void> mark(std::string_view name, std::int64_t value);
  /// Stores the highest number used and the time of the log, because the log may become empty.
  Result<void> mark_numbers();

 private:
  Result<void> prepare();
  Result<void> find_machines();
  Result<void> find_dirty_heads(Seq flushed);
  Result<void> begin();
  Result<void> check_limits(const Write& write) const;
  Result<Seq> append(const Write& write);
  Result<Seq> append_tagged(const Write& write);
  void bind_entry(const EntryView& entry, Seq seq, std::int64_t machine);
  void bind_sparse(int index, std::string_view text);
  void bind_request(const Write& write, bool first);
  Result<std::int64_t> machine_number(std::string_view name);

  std::int64_t flush_every() const;
  Result<void> write_slice(std::size_t most);
  std::size_t share_of(std::size_t entries) const;
  Result<void> write_head(const DirtyHead& head);
  Result<void> write_all_heads();
  Result<void> end_transaction();
  void roll_back();
  Error lost(Error error);
  void forget_batch();

  Status& status_;
  Checkpointer& checkpointer_;
  const SqliteOptions& options_;

  PendingEntries pending_;
  Database db_;
  Appender appender_{pending_};
  ApplicationSql application_;
  Statement begin_, commit_, rollback_, savepoint_, release_, rollback_to_;
  Statement insert_, insert_head_, update_head_, insert_machine_, update_meta_, put_, erase_;
  std::array<bool, 32> bound_{};  ///< which optional parameters of `insert_` are bound

  DirtyHeads heads_;
  std::map<std::string, std::int64_t, std::less<>> machines_;
  std::vector<std::string> new_machines_;  ///< of the open batch
  std::string last_machine_;
  std::int64_t last_number_ = 0;

  bool in_batch_ = false;
  std::atomic<std::thread::id> batch_thread_;
  Seq next_ = 1;
  Seq batch_last_ = 0;
  Time batch_at_{};
  std::atomic<std::int64_t> rows_ = 0;  ///< approximate number of heads
  std::size_t slice_ = 0;               ///< head rows written in the open transaction
  std::int64_t wal_pages_ = 0;
};

template <class Work>
Result<void> Writer::between_batches(Work work) {
  PAWL_CHECK(status_.writable());
  if (in_batch_) return fail(Code::invalid_argument, "a batch is open; commit or discard it first");
  PAWL_CHECK(begin());
  auto done = write_all_heads();
  if (done) done = work();
  if (!done) return fail(lost(std::move(done).error()));
  return end_transaction();
}

}  // namespace pawl::sqlite
