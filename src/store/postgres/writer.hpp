// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The owner's side of the PostgreSQL store. A batch is kept in memory in the form in which it is sent, and
/// one round trip makes a small one durable:
///
///     BEGIN; fence; INSERT INTO log …; heads written behind; NOTIFY; COMMIT
///
/// A larger one is copied while it is still being decided, which costs the server a third per entry. Where it
/// is likely to consist of entries alone, as the one before it did, what follows them travels ahead of them,
/// so that its end is the last message:
///
///     BEGIN; fence; COPY log FROM STDIN; NOTIFY; COMMIT → entries → end
///
/// If something else turns up, that is given up and sent again in two steps, as other large batches are:
///
///     BEGIN; fence; COPY log FROM STDIN → entries → heads written behind; NOTIFY; COMMIT
///
/// Only application SQL is run at once, in the batch's transaction, because its outcome must be known.

#include <array>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/dirty_heads.hpp"
#include "store/postgres/application_sql.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/keeper.hpp"
#include "store/postgres/ownership.hpp"
#include "store/postgres/requests.hpp"
#include "store/postgres/schema.hpp"
#include "store/postgres/wire.hpp"
#include "store/status.hpp"

namespace pawl::postgres {

/// Used by one thread at a time, except where noted.
class Writer {
 public:
  Writer(const PostgresOptions& options, const Address& address, const Names& names, Status& status,
         Ownership& ownership, Keeper& keeper);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// `next` is the first number this owner may give out; `flushed` is how far the table of heads is true.
  Result<void> open(Connection db, ServerFacts facts, Seq next, Seq flushed);
  /// Drops an open batch, writes down what only memory knows, and ends the lease.
  Result<void> close();

  Result<Seq> apply(const Write& write);
  Result<void> put(std::span<const Ephemeral> values);
  Result<void> commit();
  void discard();
  Result<void> execute(std::span<const Sql> statements);
  /// Writes heads that are missing, from their newest entries, in one durable transaction.
  Result<void> rebuild_heads(std::span<const MissingHead> missing);

  /// Whether the calling thread has a batch open here. From any thread.
  bool batch_is_mine() const { return batch_thread_.load() == std::this_thread::get_id(); }
  /// A request of the open batch; or whether the log may hold it.
  const StoredRequest* batch_request(const RequestId& id) const;
  bool may_know(const RequestId& id) const { return requests_.may_know(id); }

  Connection& database() { return db_; }
  /// Runs `work` in a transaction of its own, between batches, with every head written before it.
  template <class Work>
  Result<void> between_batches(Work work);
  /// Notes the highest number given out and the log's time, which an empty log no longer shows.
  void queue_numbers();
  void cut(Seq horizon) { requests_.cut(horizon); }

 private:
  // Opening (writer.cpp).
  Result<void> prepare_connection();
  Result<void> find_types();
  Result<void> find_state(Seq flushed);
  Result<void> check_limits(const Write& write) const;
  Result<void> check_request(const RequestId& id);
  void begin();
  void append(const Write& write);
  std::int64_t machine_number(std::string_view name);
  Result<void> run_sql(std::span<const Sql> statements);

  // Sending (send.cpp).

  /// From how many entries on, or bytes of them, a COPY costs less than an INSERT; and how many are sent at a
  /// time from then on.
  static constexpr std::size_t kCopied = 32;
  static constexpr std::size_t kPart = 64;
  static constexpr std::size_t kPartBytes = std::size_t{1} << 20;

  void begin_sending();
  void queue_begin();
  void queue_machines();
  std::vector<std::string> new_partitions();
  void queue_log();
  /// Sends the entries that have come together, so that the server takes them while others are decided.
  void stream();
  void start_copy(bool may_commit);
  Result<void> copy_rows();
  Result<void> end_copy();
  Result<void> copy_log();
  Result<void> leave_copy();
  /// Whether nothing but entries is to be written so far.
  bool only_entries() const;
  bool worth_a_copy() const;
  bool lacks_partition() const { return new_partitions_end_ <= batch_last_; }
  void queue_slice(std::size_t most);
  void queue_ephemerals();
  void queue_batch_number();
  Result<void> check_slice(const std::vector<Rows>& results) const;
  static Result<void> check_stored(std::int64_t sent, std::int64_t stored);
  Result<void> send_batch();

  // Making durable (commit.cpp).
  Result<void> commit_until_known();
  Result<bool> resolve();
  Result<void> reconnect();
  Result<bool> find_batch();
  Result<void> begin_between();
  Result<void> end_between();
  void finish_batch();
  void forget_batch();
  Error gave_up(Error error);
  Error lost(Error error);

  const PostgresOptions& options_;
  const Address& address_;
  const Names& names_;
  Status& status_;
  Ownership& ownership_;
  Keeper& keeper_;

  Connection db_;
  ServerFacts facts_;
  ApplicationSql application_;
  Requests requests_;
  DirtyHeads heads_;
  std::map<std::string, std::int64_t, std::less<>> machines_;
  std::int64_t last_machine_ = 0;  ///< highest number
  Seq partitions_end_ = 1;         ///< the first number that no partition takes
  std::uint32_t log_type_ = 0;
  std::uint32_t log_array_ = 0;  ///< numbers of the array types
  std::uint32_t head_array_ = 0;
  std::uint32_t ephemeral_array_ = 0;
  std::uint32_t head_type_ = 0;
  std::uint32_t ephemeral_type_ = 0;
  Seq next_ = 1;

  // The open batch.
  bool in_batch_ = false;
  bool transaction_open_ = false;  ///< application SQL or the first entries have begun it
  bool ran_sql_ = false;
  bool copy_headed_ = false;   ///< the COPY that is under way has its header
  bool copy_commits_ = false;  ///< the end of the newest COPY is that of its transaction
  bool copy_left_ = false;     ///< one was given up in this batch
  bool mixed_ = false;         ///< the batch before this one had more than entries
  std::atomic<std::thread::id> batch_thread_;
  std::int64_t batch_ = 0;  ///< number of this batch, for those without entries
  std::int64_t batch_epoch_ = 0;
  Seq batch_first_ = 0;
  Seq batch_last_ = 0;
  Time batch_at_{};
  CopyRows log_;
  std::vector<CopyRows> full_;    ///< entries that have come together; kept until they are durable
  std::size_t queued_parts_ = 0;  ///< how many of these are in the open transaction
  std::int64_t copied_ = 0;       ///< entries that the COPY which is under way was given
  std::int64_t inserted_ = 0;     ///< entries that were queued as an INSERT, whose result is `inserted_at_`
  std::size_t inserted_at_ = 0;
  std::size_t queued_machines_ = 0;
  std::vector<std::string> new_machines_;
  std::map<RequestId, StoredRequest> batch_requests_;
  std::map<std::pair<InstanceId, std::string>, Ephemeral> ephemerals_;
  std::size_t slice_ = 0;  ///< head rows written in the open transaction
  std::size_t slice_inserts_at_ = 0;
  std::size_t slice_updates_at_ = 0;
  std::int64_t slice_inserts_ = 0;
  std::int64_t slice_updates_ = 0;
  Seq new_partitions_end_ = 0;
};

template <class Work>
Result<void> Writer::between_batches(Work work) {
  PAWL_CHECK(status_.writable());
  if (in_batch_) return fail(Code::invalid_argument, "a batch is open; commit or discard it first");
  auto done = begin_between();
  if (done) done = work();
  if (!done) return fail(lost(std::move(done).error()));
  return end_between();
}

}  // namespace pawl::postgres
