// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The store: an ordered log of entries, the newest entry of each instance (its head), and little else. It
/// knows nothing of machines; it decides nothing except that what `commit` acknowledged is durable. One
/// conformance suite (tests/store) defines it for every implementation.
///
///     PAWL_TRY(auto store, open_sqlite({.path = "pawl.db"}));
///     PAWL_TRY(const auto seq, store->apply({.entries = entries}));   // joins the open batch
///     PAWL_CHECK(store->commit());                                    // everything applied is durable now
///
/// The owner calls `apply`, `commit`, `discard` and the maintenance calls from one thread at a time; the
/// reading calls are safe from any thread and see only what is durable.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/sql.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// The table in which the engine records the applied migrations of the application's tables. It belongs to
/// these tables, so it is copied or dropped with them.
inline constexpr std::string_view kMigrationRecord = "pawl_migrations";

/// Position in the log; the first is 1. Never reused, also not after deletion.
using Seq = std::int64_t;

/// What an entry records.
enum class EntryKind : std::uint8_t {
  created = 1,   ///< the instance, or its next generation, began
  fired = 2,     ///< an event made a transition
  recovery = 3,  ///< the owner restarted and mapped the state
  work = 4,      ///< bookkeeping of pending work: an attempt was counted, failed or was given up
  timer = 5,     ///< a timer was consumed without a transition, because its event was refused
  message = 6,   ///< a message to another partition was acknowledged or refused
};

/// Marks the transaction of a request id; `content` tells a repeat from a different request.
struct RequestTag {
  std::array<std::uint8_t, 16> id{};
  std::int64_t content = 0;
  bool operator==(const RequestTag&) const = default;
};

/// One entry to be written. Views are borrowed for the duration of `apply`.
struct EntryView {
  InstanceId id;
  EntryKind kind = EntryKind::fired;
  std::string_view machine;  ///< stored name
  std::string_view key;      ///< the instance's full key, on every entry that begins a generation, else empty
  std::string_view partition;  ///< likewise; empty if it is the instance's own id
  std::int64_t version = 0;
  std::int64_t generation = 1;
  Seq prev = 0;  ///< the instance's entry before this one, 0 for the first
  std::string_view state;
  std::int64_t schema = 1;
  Time at{};
  std::string_view event;    ///< name, empty for `created`
  std::string_view payload;  ///< JSON
  std::string_view data;     ///< JSON, after the transition
  std::string_view extra;    ///< JSON: timers, pending work, messages; empty if there are none
  bool finished = false;     ///< the state is terminal
};

/// One entry as read back.
struct Entry {
  Seq seq = 0;
  InstanceId id;
  EntryKind kind = EntryKind::fired;
  std::string machine;
  std::string key;
  std::string partition;
  std::int64_t version = 0;
  std::int64_t generation = 1;
  Seq prev = 0;
  std::string state;
  std::int64_t schema = 1;
  Time at{};
  std::string event;
  std::string payload;
  std::string data;
  std::string extra;
  bool finished = false;
  bool operator==(const Entry&) const = default;
};

/// One transaction: entries of one partition, the application's statements, and perhaps a request id.
struct Write {
  std::span<const EntryView> entries;
  std::span<const Sql> sql;
  std::optional<RequestTag> request;
};

/// Checks that every implementation makes. Errors: `too_large` if the texts of an entry exceed `entry_bytes`
/// in total; `invalid_argument`.
Result<void> check_write(const Write& write, std::size_t entry_bytes);

/// The newest durable entry of an instance, as loaded at opening. The key is always set; the partition is
/// empty if it is the instance's own id.
struct StoredHead {
  InstanceId id;
  std::string_view machine;
  std::string_view key;
  std::string_view partition;
  std::int64_t version = 0;
  std::int64_t generation = 1;
  Seq seq = 0;
  std::string_view state;
  Time created_at{};  ///< when the newest generation began
  Time at{};
  std::string_view extra;  ///< empty if the newest entry has none
  bool finished = false;
};

/// The result of a repeated request: the entries of the first one, in order.
struct StoredRequest {
  std::int64_t content = 0;
  std::vector<Entry> entries;
};

/// A value stored beside an instance: not logged, the newest wins, written together with a later commit.
struct Ephemeral {
  InstanceId id;
  std::string name;
  std::string value;  ///< JSON; empty removes it
  Time at{};
};

/// Facts about an opened store.
struct StoreInfo {
  std::string incarnation;  ///< 32 hexadecimal digits; a restored backup has another one
  std::int64_t epoch = 0;   ///< grows with each opening by an owner
  Seq last = 0;             ///< newest durable entry; read-only: when it was opened
  Seq horizon = 0;          ///< entries up to and including this one have been removed
  Time last_at{};           ///< time of the newest entry; log time never goes below
  bool read_only = false;
  std::vector<std::string> weakened_guarantees{};  ///< guarantees that this store does not fully keep, one
                                                   ///< sentence each
};

/// An instance whose head is missing although the log needs it.
struct MissingHead {
  InstanceId id;
  Seq newest = 0;  ///< its newest entry
  Seq begins = 0;  ///< entry that began its newest generation, with its key; 0: it was removed
};

/// Result of an integrity check: empty `problems` means sound.
struct StoreCheck {
  std::vector<std::string> problems;
  std::int64_t entries = 0;
  std::int64_t heads = 0;
  std::vector<MissingHead> missing{};  ///< heads that `repair` can rebuild
};

/// The result of a repair: one sentence for each instance, and the check afterwards.
struct StoreRepair {
  std::vector<std::string> repaired;
  StoreCheck left;
};

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  virtual StoreInfo info() const = 0;

  // Writing, by the owner.

  /// Adds a transaction to the open batch and returns the seq of its first entry; the others follow (0 if
  /// it has no entries). A refusal concerns this transaction alone and leaves the batch as it was.
  /// Refusals: `sql_refused`, `sql_failed`, `row_expectation_failed`, `too_large`, `request_id_reused`,
  /// `invalid_argument`, `store_read_only`. Other errors lose the whole batch: after `disk_full` and
  /// `rolled_back` the store stays usable, after `store_io`, `store_corrupt`, `store_fenced` and
  /// `store_poisoned` it does not.
  virtual Result<Seq> apply(const Write& write) = 0;

  /// Adds values to the open batch.
  virtual Result<void> put(std::span<const Ephemeral> values) = 0;

  /// Makes the open batch durable. After `disk_full` and `rolled_back` nothing of the batch was applied and
  /// the store stays usable. After `store_fenced` nothing was applied, and the store has another owner. Any
  /// other error poisons the store: whether the batch is durable shows only when the store is opened again.
  virtual Result<void> commit() = 0;

  /// Drops the open batch. Its numbers are not used again, also not after the store was closed.
  virtual void discard() = 0;

  /// Whether another thread can write part of the open batch. Thread-safe.
  virtual bool wants_help() const { return false; }
  /// Writes that part. Called by one other thread at a time; the owner continues, and waits if it must. A
  /// failure is reported by the owner's next call.
  virtual void help() {}

  /// Whether this process still owns the store, as far as it knows without asking the database. State in
  /// memory may be served only while it does. Cheap; thread-safe. Error: `store_fenced`.
  virtual Result<void> still_owner() const { return {}; }
  /// Whether ownership is a lease, so that `still_owner` may change by itself.
  virtual bool is_leased() const { return false; }
  /// Whether this owner will never write again: the store failed, or another owner has taken over. False for
  /// a lease that has expired, because it may be renewed. Thread-safe.
  virtual bool has_ended() const { return false; }

  // Reading; thread-safe.

  /// Visits every head, in no particular order; `extra` and `key` are valid during the call of `visit` only.
  virtual Result<void> load(const std::function<void(const StoredHead&)>& visit) = 0;

  /// The newest entry of an instance, if any. `seq` is the position that its head has.
  virtual Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq) = 0;

  /// Entries of an instance, newest first, from `before` (exclusive; 0: from the newest) at most `limit`.
  /// `head` is the instance's newest entry. Stops at the horizon.
  virtual Result<std::vector<Entry>> history(const InstanceId& id, Seq head, Seq before,
                                             std::size_t limit) = 0;

  /// Entries after a position, in order. Error: `cursor_expired` if `after` is below the horizon.
  virtual Result<std::vector<Entry>> feed(Seq after, std::size_t limit) = 0;

  /// Waits until any process has written an entry after a position, at most for `most`. Returns whether there
  /// is such an entry. Error: `cursor_expired`.
  virtual Result<bool> wait(Seq after, Duration most);

  /// The transaction of a request id. If called by the owner's thread, includes the open batch.
  virtual Result<std::optional<StoredRequest>> find_request(const std::array<std::uint8_t, 16>& id) = 0;

  virtual Result<std::vector<Ephemeral>> ephemerals(const InstanceId& id) = 0;

  // Maintenance, by the owner, between batches.

  /// Removes the log up to `horizon` (at most the newest entry); heads below it contain their entry. Does a
  /// bounded part of the work and returns false while more is left.
  virtual Result<bool> retain(Seq horizon) = 0;

  /// Removes the heads of these instances and their ephemeral values, in one durable transaction. Only the
  /// owner can decide which instances to remove: an entry that continues one of them later damages the store.
  /// No-op for an instance without a head. The caller limits their number.
  virtual Result<void> forget(std::span<const InstanceId> ids) = 0;

  /// The last entry older than `time`; 0 if there is none.
  virtual Result<Seq> seq_before(Time time) = 0;

  /// Moves recent writes from the write-ahead log into the database; bounded in time. Called from its own
  /// thread.
  virtual Result<void> checkpoint() = 0;

  /// Writes a copy that is an independent store with another incarnation, while this store stays in use.
  /// Thread-safe.
  virtual Result<void> backup(const std::string& path, const std::function<void(double)>& progress) = 0;

  /// Reads everything and compares the heads with the log. Thread-safe.
  virtual Result<StoreCheck> check() = 0;

  /// Rebuilds missing heads from the log, in one durable transaction. Must come before `load`, which refuses
  /// a store with missing heads.
  virtual Result<StoreRepair> repair() = 0;

  /// Statements of the application's own schema (CREATE TABLE …), at start-up, in one durable transaction.
  virtual Result<void> execute(std::span<const Sql> statements) = 0;

  /// Runs a SELECT of the application and returns its rows. Thread-safe. Queries have their own connections:
  /// no other call waits for them. Errors: `timed_out`, `too_large`, `cancelled` by `stop`, `stopped`,
  /// `sql_refused`, `sql_failed`.
  virtual Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement,
                                                           const std::stop_token& stop = {}) = 0;

  /// Ends all queries and refuses further ones with `stopped`. Must be called before the store is destroyed
  /// if other threads may still be in `query`. Thread-safe.
  virtual void stop_queries() = 0;
};

/// How to open a SQLite store.
struct SqliteOptions {
  std::string path;
  bool read_only = false;
  bool create = true;
  std::int64_t flush_every =
      65536;  ///< transitions between two updates of the heads; more if there are many heads
  std::size_t entry_bytes = std::size_t{1} << 20;  ///< limit of one entry's texts together
  QueryLimits query_limits{};
  Duration lock_wait =
      std::chrono::seconds(5);  ///< how long a write waits while another program writes to the file
  std::string vfs;              ///< name of a registered SQLite VFS; empty: the system's
  std::function<Time()> now;    ///< for the owner's record; default: the system's clock
};

/// Errors: `store_locked` (by whom), `store_newer`, `store_corrupt` (where), `store_io`, `invalid_argument`.
Result<std::unique_ptr<Store>> open_sqlite(SqliteOptions options);

/// How to open a PostgreSQL store. The URL may carry some of these itself; see docs/postgresql.md.
struct PostgresOptions {
  std::string url;  ///< "postgresql://…", everything that libpq takes, TLS options included
  bool read_only = false;
  bool create = true;
  bool take_over = false;                     ///< from an owner whose lease has not expired
  bool unsafe = false;                        ///< continue although the server may lose acknowledged commits
  std::string schema = "pawl";                ///< the database schema that holds the store's tables
  Duration lease = std::chrono::seconds(10);  ///< how long an owner stays the owner without a renewal
  Duration patience = std::chrono::seconds(30);  ///< how long to try to restore a lost connection
  std::int64_t flush_every = 262'144;            ///< as above; a row update costs more here
  std::size_t entry_bytes = std::size_t{1} << 20;
  std::int64_t partition_entries = 1'000'000;  ///< entries in one partition of the log
  QueryLimits query_limits{};
};

/// Errors: `store_locked` (by whom), `store_newer`, `store_corrupt`, `store_io`, `store_unsafe`,
/// `store_diverged`, `invalid_argument`. No message holds a password.
Result<std::unique_ptr<Store>> open_postgres(PostgresOptions options);

/// How to open a store of either kind.
struct StoreOptions {
  std::string where;  ///< "sqlite:PATH" or "postgresql://…"
  bool read_only = false;
  bool create = true;
  bool take_over =
      false;  ///< from an owner that still holds it; a lock on a file ends with its process anyway
  std::string vfs{};
  QueryLimits query_limits{};
  std::function<Time()> now{};
};

/// Errors: `invalid_argument` if `where` is neither; those of the store.
Result<std::unique_ptr<Store>> open_store_at(StoreOptions options);

}  // namespace pawl
