// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The writing side of the PostgreSQL store. A batch is kept in memory in the format in which it is sent, and
/// one round trip makes a small batch durable:
///
///     BEGIN; fence; INSERT INTO log …; heads written behind; NOTIFY; COMMIT
///
/// A larger batch is sent with COPY while it is still being decided, at a third of the server's cost per
/// entry. If it probably consists of entries only, like the previous batch, the statements that follow the
/// entries are sent ahead, so that the end of the COPY is the last message:
///
///     BEGIN; fence; COPY log FROM STDIN; NOTIFY; COMMIT → entries → end
///
/// If the batch gets other parts, this COPY is abandoned and sent again in two steps, like other large
/// batches:
///
///     BEGIN; fence; COPY log FROM STDIN → entries → heads written behind; NOTIFY; COMMIT
///
/// Only application SQL runs immediately, in the batch's transaction, because its outcome must be known.

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
#include "store/postgres/listener.hpp"
#include "store/postgres/ownership.hpp"
#include "store/postgres/requests.hpp"
#include "store/postgres/schema.hpp"
#include "store/postgres/wire.hpp"
#include "store/status.hpp"

namespace pawl::postgres {

/// For one thread at a time unless noted otherwise.
class Writer {
 public:
  Writer(const PostgresOptions& options, const Address& address, const Names& names, Status& status,
         Ownership& ownership, Listener& listener);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// `next` is the first number that this owner may use; the table of heads is up to date up to `flushed`.
  Result<void> open(Connection db, ServerFacts facts, Seq next, Seq flushed);
  /// Drops an open batch, writes the heads in memory, and ends the lease.
  Result<void> close();

  Result<Seq> apply(const Write& write);
  Result<void> put(std::span<const Ephemeral> values);
  Result<void> commit();
  void discard();
  Result<void> execute(std::span<const Sql> statements);
  /// Writes missing heads from their newest entries, in one durable transaction.
  Result<void> rebuild_heads(std::span<const MissingHead> missing);

  /// Whether the calling thread has opened the batch. Thread-safe.
  bool batch_is_mine() const { return batch_thread_.load() == std::this_thread::get_id(); }
  /// A request of the open batch; whether the log may contain a request.
  const StoredRequest* batch_request(const RequestId& id) const;
  bool may_know(const RequestId& id) const { return requests_.may_know(id); }

  Connection& database() { return db_; }
  /// Writes every head, then runs `work` in its own transaction, between batches.
  template <class Work>
  Result<void> between_batches(Work work);
  /// Stores the highest number used and the time of the log, because the log may become empty.
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

  /// Number and bytes of entries from which a COPY costs less than an INSERT; from then on as many are sent
  /// at a time.
  static constexpr std::size_t kCopied = 32;
  static constexpr std::size_t kPart = 64;
  static constexpr std::size_t kPartBytes = std::size_t{1} << 20;

  void begin_sending();
  void queue_begin();
  void queue_machines();
  std::vector<std::string> new_partitions();
  void queue_log();
  /// Sends the collected entries, so that the server stores them while others are decided.
  void stream();
  void start_copy(bool may_commit);
  Result<void> copy_rows();
  Result<void> end_copy();
  Result<void> copy_log();
  Result<void> leave_copy();
  /// Whether the batch consists of entries only so far.
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
  Error drop_batch(Error error);
  Error lost(Error error);

  const PostgresOptions& options_;
  const Address& address_;
  const Names& names_;
  Status& status_;
  Ownership& ownership_;
  Listener& listener_;

  Connection db_;
  ServerFacts facts_;
  ApplicationSql application_;
  Requests requests_;
  DirtyHeads heads_;
  std::map<std::string, std::int64_t, std::less<>> machines_;
  std::int64_t last_machine_ = 0;  ///< highest number of a machine
  Seq partitions_end_ = 1;         ///< the first number without a partition
  std::uint32_t log_type_ = 0;
  std::uint32_t log_array_ = 0;  ///< OIDs of the array types
  std::uint32_t head_array_ = 0;
  std::uint32_t ephemeral_array_ = 0;
  std::uint32_t head_type_ = 0;
  std::uint32_t ephemeral_type_ = 0;
  Seq next_ = 1;

  // The open batch.
  bool in_batch_ = false;
  bool transaction_open_ = false;  ///< begun by application SQL or the first entries
  bool ran_sql_ = false;
  bool copy_headed_ = false;   ///< the header of the current COPY was sent
  bool copy_commits_ = false;  ///< the end of the newest COPY commits its transaction
  bool copy_left_ = false;     ///< a COPY of this batch was abandoned
  bool mixed_ = false;         ///< the previous batch had more than entries
  std::atomic<std::thread::id> batch_thread_;
  std::int64_t batch_ = 0;  ///< number of this batch, to identify batches without entries
  std::int64_t batch_epoch_ = 0;
  Seq batch_first_ = 0;
  Seq batch_last_ = 0;
  Time batch_at_{};
  CopyRows log_;
  std::vector<CopyRows> full_;    ///< collected entries; kept until they are durable
  std::size_t queued_parts_ = 0;  ///< how many parts of `full_` are in the open transaction
  std::int64_t copied_ = 0;       ///< entries sent with the current COPY
  std::int64_t inserted_ = 0;     ///< entries queued as an INSERT, whose result is at `inserted_at_`
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
