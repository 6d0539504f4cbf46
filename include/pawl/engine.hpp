// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The durable engine: instances of machines in a store, one commit per step.
///
///     pawl::ThreadRuntime runtime;
///     pawl::Machines machines;
///     machines.add<door>();
///     auto engine = pawl::Engine::open(runtime, std::move(machines), {.store = "sqlite:doors.db"}).value();
///
///     engine->create<door>("front").value();
///     auto front = engine->send<door>("front", Push{}).value();     // returns once it is durable
///     front.state;                                                  // Door::open
///
/// Every answer, including refusals, is based on durable state. After a crash, opening the store again
/// continues every instance from its last commit: timers fire, work is retried, messages are delivered.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/error.hpp"
#include "pawl/instance.hpp"
#include "pawl/lease.hpp"
#include "pawl/log.hpp"
#include "pawl/machines.hpp"
#include "pawl/runtime.hpp"
#include "pawl/sql.hpp"
#include "pawl/time.hpp"
#include "pawl/transaction.hpp"

namespace pawl {

class EngineCore;

/// Options of an engine. Every default suits one process on one machine.
struct EngineOptions {
  std::string store = "sqlite:pawl.db";  ///< "sqlite:PATH" or "postgresql://user@host/database"
  bool take_over = false;                ///< take the store over from an owner whose lease is still valid
  std::string vfs{};                     ///< a registered SQLite VFS, for `sim::Disk`
  std::size_t work_threads = 8;          ///< threads that run work
  std::size_t max_started_attempts =
      1024;                   ///< first attempts that are recorded as started and run or wait for a thread
  std::size_t queue = 65536;  ///< requests that may wait; further ones get `overloaded`
  std::size_t batch = 4096;   ///< maximum number of transactions per commit
  std::size_t cache_bytes = std::size_t{256} << 20;  ///< instance data kept in memory
  std::map<std::string, std::uint32_t> pools{};      ///< permit pools by name
  std::vector<Sql> schema{};                         ///< the application's CREATE TABLE IF NOT EXISTS …
  /// Migrations of tables by their owner's name: each is applied once, in order, in one transaction. Append
  /// new migrations and never change released ones. A store that has seen more of them is refused
  /// (`store_newer`).
  std::map<std::string, std::vector<Migration>> migrations{};
  QueryLimits query_limits{};                 ///< of each `Engine::query`
  std::optional<Duration> keep{};             ///< how long log entries are kept; by default forever
  std::optional<Duration> forget_finished{};  ///< how long finished instances are kept; by default forever
  Duration checkpoint_every = std::chrono::milliseconds(500);
  Duration retain_every = std::chrono::minutes(1);  ///< how often the log is cut while there are commits
  Logger log{};                                     ///< silent by default
};

/// What opening a store found.
struct OpenReport {
  std::size_t instances = 0;
  std::size_t recovered = 0;    ///< instances whose state a recovery mapping changed
  std::size_t interrupted = 0;  ///< pieces of work whose attempt a crash interrupted
  std::size_t overdue_timers = 0;
  std::vector<std::string>
      weakened_guarantees{};  ///< how the store falls short of the full guarantee, in sentences
  std::vector<std::string>
      unknown;  ///< "machine" or "machine.state" that this program does not know; untouched
};

/// Reads instances and collects sends; see `Engine::atomically`.
class Atomic;

/// Follows the log from a cursor; see `Engine::subscribe`. Used by one thread at a time. Once the engine is
/// destroyed it returns `stopped`; its cursor can be given to the next engine on the same store.
class Subscription {
 public:
  /// The next entries, at most `limit`, without waiting; empty if there are none yet.
  /// Error: `cursor_expired` if retention has cut entries behind the cursor.
  Result<std::vector<LogEvent>> poll(std::size_t limit = 256);

  /// The same, but waits for at least one entry; empty only after the timeout. Errors: also `store_poisoned`
  /// and `stopped` if there can be no further entries.
  Result<std::vector<LogEvent>> next(std::optional<Duration> timeout = std::nullopt, std::size_t limit = 256);

  /// The cursor behind the last returned entry.
  std::string cursor() const;

 private:
  friend class Engine;
  Subscription(std::shared_ptr<EngineCore> core, std::int64_t after, std::string cursor)
      : core_(std::move(core)), after_(after), cursor_(std::move(cursor)) {}
  std::shared_ptr<EngineCore> core_;
  std::int64_t after_;
  std::string cursor_;
};

/// Thread-safe. The destructor asks running work to stop, waits for it, and answers waiting calls with
/// `stopped`.
class Engine {
 public:
  /// Opens the store, loads every head, applies recovery mappings and counts interrupted work.
  /// Errors: those of `Machines::validate` and of the store (`store_locked`, `store_newer`, `store_corrupt`,
  /// …).
  static Result<std::unique_ptr<Engine>> open(Runtime& runtime, Machines machines,
                                              EngineOptions options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const OpenReport& report() const;

  /// Calls `action` once when the engine is destroyed, before it stops anything: for parts that use the
  /// engine and live longer. The latest action runs first.
  void before_close(std::function<void()> action);

  // Writing.

  /// Creates an instance. Errors: `duplicate_instance`, or `finished_instance` if the machine does not allow
  /// another generation of a finished key (see `.generations()`).
  template <const auto& M>
  Result<Snapshot<M>> create(std::string key, const DataOf<M>& data = {}, CreateOptions options = {}) {
    return snapshot<M>(commit(Transaction{}.create<M>(std::move(key), data, std::move(options))));
  }

  /// Sends an event and waits until it is durable. Errors: `illegal_event`, `guard_refused`,
  /// `finished_instance`, `unknown_instance`, `version_conflict`, `too_large`, `outcome_unknown`,
  /// `store_poisoned`, `disk_full`, …
  template <const auto& M, class E>
  Result<Snapshot<M>> send(std::string key, E event, SendOptions options = {}) {
    return snapshot<M>(commit(Transaction{}.send<M>(std::move(key), std::move(event), std::move(options))));
  }

  /// Several operations on instances of one partition, all or nothing; one snapshot per operation. If the
  /// engine is idle, the calling thread commits, which saves two wake-ups.
  Result<std::vector<Instance>> commit(Transaction transaction);

  /// The same without waiting. Once the outcome is durable, `done` runs on the engine's thread or on that of
  /// another caller that commits. It must not block and must not destroy the engine.
  void submit(Transaction transaction, std::move_only_function<void(Result<std::vector<Instance>>)> done);

  /// A change that depends on reads: `change` reads instances of one partition and sends to them. The whole
  /// is committed if the partition has not changed in the meantime; otherwise `change` runs again, at most
  /// `attempts` times. It runs on the caller's thread and must have no side effects. Errors: those that
  /// `change` returns, `version_conflict` after the last attempt, and those of `commit`.
  Result<std::vector<Instance>> atomically(std::string partition,
                                           const std::function<Result<void>(Atomic&)>& change,
                                           int attempts = 10);

  // Reading.

  template <const auto& M>
  Result<Snapshot<M>> get(std::string_view key) const {
    return to_snapshot<M>(read(M.traits.name, key));
  }
  /// Errors: `unknown_machine`, `unknown_instance`.
  Result<Instance> read(std::string_view machine, std::string_view key) const;

  /// Instances in the order of their creation, page by page. Error: `cursor_invalid`.
  Result<InstancePage> list(const ListQuery& query) const;

  /// Number of instances by machine and state.
  std::map<std::string, std::map<std::string, std::size_t>> counts() const;

  /// The entries of an instance, newest first; `truncated` if retention has cut the rest.
  Result<History> history(std::string_view machine, std::string_view key, std::int64_t before = 0,
                          std::size_t limit = 100) const;

  /// Waits until the instance is in one of these states, or finished. May miss a state that the instance
  /// leaves at once. Errors: `timed_out`, with the current state; `store_poisoned`, `stopped`.
  template <const auto& M, std::same_as<StateOf<M>>... More>
  Result<Snapshot<M>> wait(std::string_view key, std::optional<Duration> timeout, StateOf<M> state,
                           More... more) {
    return to_snapshot<M>(wait_for(M.traits.name, key,
                                   {std::string(state_name<M>(state)), std::string(state_name<M>(more))...},
                                   timeout));
  }
  Result<Instance> wait_for(std::string_view machine, std::string_view key,
                            const std::vector<std::string>& states, std::optional<Duration> timeout) const;

  /// The same without waiting; `done` runs like that of `submit`.
  void wait_for(std::string_view machine, std::string_view key, std::vector<std::string> states,
                std::optional<Duration> timeout, std::move_only_function<void(Result<Instance>)> done) const;

  /// The newest durable entry; 0 if there is none.
  std::int64_t last_seq() const;
  /// The cursor in front of the newest `count` entries; retention may have cut them.
  std::string cursor_before(std::int64_t count) const;

  /// Follows the log from a cursor: "" for new entries only, "begin" for all that are kept.
  /// Errors: `cursor_invalid`, `cursor_expired`.
  Result<Subscription> subscribe(std::string_view cursor) const;

  /// A SELECT on the application's tables; sees durable rows. It uses its own connections, so nothing else
  /// waits for it. Errors: `timed_out`, `too_large` (see `QueryLimits`); `cancelled` if `stop` was requested;
  /// `stopped` if the engine closes in the meantime; `sql_refused`, `sql_failed`.
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement,
                                                   const std::stop_token& stop = {}) const;

  // Work that is done elsewhere; see `pawl/lease.hpp`. The callbacks run like those of `submit`.

  /// The oldest work of these names, or nothing if there is none within `wait`. Its attempt is recorded
  /// before it is returned. Errors: `unknown_machine`, `unknown_name`.
  Result<std::optional<ClaimedWork>> claim(std::string_view machine, std::vector<std::string> works,
                                           Duration wait);
  void claim(std::string_view machine, std::vector<std::string> works, Duration wait,
             std::move_only_function<void(Result<std::optional<ClaimedWork>>)> done);
  /// Keeps the lease. Errors: `lease_lost`; `store_fenced` while this engine may have lost the store.
  Result<LeaseStatus> heartbeat(const Lease& lease);
  void heartbeat(const Lease& lease, std::move_only_function<void(Result<LeaseStatus>)> done);
  /// Ends the attempt with a reply, or with an error, like a handler. Returns once that is durable. A repeat
  /// with the same result that arrives before then gets the same outcome. Error: `lease_lost`.
  Result<void> complete(const Lease& lease, Result<Reply> result);
  void complete(const Lease& lease, Result<Reply> result, std::move_only_function<void(Result<void>)> done);

  // Beside the log.

  /// Stores a small value beside an instance: not logged, the newest wins, durable a little later.
  Result<void> put_ephemeral(std::string_view machine, std::string_view key, std::string name,
                             std::string json);
  Result<std::map<std::string, std::string>> ephemerals(std::string_view machine, std::string_view key) const;

  // Operating.

  /// Error: `unknown_pool`, `invalid_argument`.
  Result<void> resize_pool(std::string_view name, std::uint32_t size);
  std::vector<PoolStatus> pools() const;
  EngineStats stats() const;
  std::vector<const Definition*> definitions() const;
  /// The definition of that current or former name; null if there is none.
  const Definition* definition(std::string_view machine) const;

  /// Cuts the log and forgets finished instances now, as the options say.
  Result<void> retain();
  /// Writes a consistent copy, a store of its own, while the engine goes on.
  Result<void> backup(const std::string& path, const std::function<void(double)>& progress = {}) const;
  /// Checks the store; returns the problems, empty if it is sound.
  Result<std::vector<std::string>> check() const;

 private:
  friend class EngineCore;
  explicit Engine(std::shared_ptr<EngineCore> core);

  template <const auto& M>
  static Result<Snapshot<M>> snapshot(Result<std::vector<Instance>> outcome) {
    if (!outcome) return fail(std::move(outcome).error());
    return to_snapshot<M>(std::move(outcome->front()));
  }

  std::shared_ptr<EngineCore> core_;
  std::mutex before_close_mutex_;
  std::vector<std::function<void()>> before_close_;
};

}  // namespace pawl
