// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The engine's implementation. One lane decides, commits and publishes; other threads submit requests and
/// read.
///
///   submit → queue → [lane] decide → store.apply … store.commit → publish heads → act → answer
///
/// Only the lane changes heads, under the unique lock, and only to durable states. A batch works on drafts; a
/// batch that fails is dropped with its drafts.

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel/engine/batch_index.hpp"
#include "kernel/engine/blocked_calls.hpp"
#include "kernel/engine/completion.hpp"
#include "kernel/engine/counters.hpp"
#include "kernel/engine/decide.hpp"
#include "kernel/engine/heads.hpp"
#include "kernel/engine/open_engine.hpp"
#include "kernel/engine/registry.hpp"
#include "kernel/engine/retention_clock.hpp"
#include "kernel/engine/timer_queue.hpp"
#include "pawl/engine.hpp"
#include "pawl/permits.hpp"
#include "pawl/runtime.hpp"
#include "store/store.hpp"

namespace pawl {

using Done = std::move_only_function<void(Result<std::vector<Instance>>)>;
using WatchDone = Completion<Instance>;
using ClaimDone = Completion<std::optional<ClaimedWork>>;
using CompleteDone = Completion<std::vector<Instance>>;
using RetainDone = Completion<void>;

/// One command for one instance.
struct Target {
  std::uint16_t machine = 0;
  InstanceId id;
  std::string key;  // empty if the instance is known to exist
  Command command;
};

/// A transaction on its way to the lane.
struct Request {
  struct PartitionGuard {
    std::string partition;
    Seq seq = 0;  // the partition's newest entry when it was read
  };
  std::vector<Target> targets;
  std::vector<Sql> sql;
  std::optional<RequestTag> tag;
  std::optional<PartitionGuard> guard;
  Done done;
  bool internal = false;  // of the engine itself: waits for a full disk instead of being refused
};

/// The outcome of a transaction in a batch. The instances are made from the drafts when the transaction is
/// answered: making them for a whole batch at once would need far more memory.
struct Decided {
  std::vector<Instance> earlier{};  // if the request id is known
  std::size_t first = 0;            // its drafts
  std::size_t count = 0;
};

/// What the instance is sent when an attempt fails: if it is retried; if not, in place of
/// `WorkOptions::failed`.
struct FailureEvents {
  std::optional<EventValue> again{};
  FailureReply last{};
};

class EngineCore : public std::enable_shared_from_this<EngineCore> {
 public:
  EngineCore(Runtime& runtime, Machines machines, EngineOptions options);
  ~EngineCore();
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;

  static Result<std::unique_ptr<Engine>> open_engine(Runtime& runtime, Machines machines,
                                                     EngineOptions options, const StoreOpener& opener);
  static void submit_inline(Engine& engine, Transaction transaction, Done done);
  Result<void> open(const StoreOpener& opener);
  void close();

  const OpenReport& report() const { return report_; }
  const Registry& registry() const { return registry_; }
  Runtime& runtime() { return runtime_; }

  // Writing, from any thread (core.cpp, requests.cpp).
  void submit(Transaction transaction, std::optional<Request::PartitionGuard> guard, Done done,
              bool here = false);
  void enqueue(Request request, bool here = false);
  Result<std::vector<Instance>> wait_for_outcome(Transaction transaction,
                                                 std::optional<Request::PartitionGuard> guard);

  // Reading, from any thread (read.cpp).
  Result<Instance> read(std::string_view machine, std::string_view key) const;
  Result<InstancePage> list(const ListQuery& query) const;
  Result<std::vector<bool>> machines_of(const ListQuery& query) const;
  std::map<std::string, std::map<std::string, std::size_t>> counts() const;
  Result<History> history(std::string_view machine, std::string_view key, Seq before,
                          std::size_t limit) const;
  Result<Instance> wait_for_state(std::string_view machine, std::string_view key,
                                  const std::vector<std::string>& states, std::optional<Duration> timeout);
  void watch_state(std::string_view machine, std::string_view key, std::vector<std::string> states,
                   std::optional<Duration> timeout, WatchDone done);
  Result<Seq> parse_cursor(std::string_view cursor) const;
  std::string make_cursor(Seq seq) const;
  Seq last_seq() const { return durable_seq_; }
  Result<std::vector<LogEvent>> follow(Seq after, std::size_t limit) const;
  Result<void> wait_for_entries(Seq after, std::optional<Duration> timeout);
  Seq partition_seq(std::string_view partition) const;
  std::vector<std::string> partition_keys(std::string_view machine, std::string_view partition) const;
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement, const std::stop_token& stop) const;

  // Work that is done elsewhere (claim.cpp).
  void claim(std::string_view machine, std::vector<std::string> works, Duration wait, ClaimDone done);
  void heartbeat(const Lease& lease, Completion<LeaseStatus> done);
  void complete(const Lease& lease, Result<Reply> result, CompleteDone done);

  // Ephemeral values and operations (operate.cpp).
  Result<void> put_ephemeral(std::string_view machine, std::string_view key, std::string name,
                             std::string json);
  Result<std::map<std::string, std::string>> ephemerals(std::string_view machine, std::string_view key) const;
  Result<void> resize_pool(std::string_view name, std::uint32_t size);
  std::vector<PoolStatus> pools() const;
  EngineStats stats() const;
  Result<void> retain();
  Result<void> backup(const std::string& path, const std::function<void(double)>& progress) const;
  Result<std::vector<std::string>> check() const;

 private:
  /// How long to wait before a failed write or read is retried.
  static constexpr Duration kPause = std::chrono::seconds(1);

  // The pools of work without a pool of its own. The options cannot define these names.
  static constexpr std::string_view kWorkThreads{};
  static constexpr std::string_view kStartedAttempts = " started";

  /// Identifies one piece of work in the store.
  using WorkKey = std::pair<InstanceId, std::int64_t>;
  struct WorkKeyHash {
    std::size_t operator()(const WorkKey& key) const {
      return std::hash<InstanceId>{}(key.first) ^ std::hash<std::int64_t>{}(key.second);
    }
  };
  /// The same as the name of a permit holder.
  class HolderName {
   public:
    explicit HolderName(const WorkKey& key);
    std::string_view view() const { return {bytes_.data(), bytes_.size()}; }

   private:
    std::array<char, sizeof(InstanceId) + sizeof(std::int64_t)> bytes_{};
  };
  struct RunningWork {
    std::stop_source stop{std::nostopstate};
    std::uint32_t attempt = 0;
    bool timed_out = false;
    bool abandoned = false;  // does not stop and already counts as failed
    bool replaced = false;   // an additional thread does the work of its thread
    bool again = false;      // the next attempt waits until it returns
    std::optional<TimerId> timeout{};
    std::optional<TimerId> lease{};  // it runs elsewhere
  };
  /// The result of a handler.
  struct Returned {
    WorkKey key;
    std::uint16_t machine = 0;
    std::uint32_t attempt = 0;
    Result<Reply> result;
  };
  /// A blocked claim() call.
  struct BlockedClaim {
    std::uint64_t id = 0;  // in the order in which they came
    std::uint16_t machine = 0;
    std::vector<std::string> works;
    bool waits = false;  // false: without an offer it is answered at once
    ClaimDone done;
    std::optional<TimerId> timeout{};
  };
  /// A complete() call whose commit is under way.
  struct Completing {
    std::uint32_t attempt = 0;
    Result<Reply> result;
    std::vector<CompleteDone> callers;  // the first one and its repeats
  };
  /// A callback that waits for a state, on the lane.
  struct Watcher {
    std::vector<std::string> states;
    WatchDone done;
    std::uint64_t number = 0;
    std::optional<TimerId> timeout{};
  };
  struct Answer {
    Request* request;
    Result<Decided> decided;
  };
  /// What a batch has decided so far.
  struct Batch {
    std::vector<Draft> drafts;  // those of one transaction are adjacent
    BatchIndex index;
    std::unordered_map<std::string, Seq> partitions;
    std::vector<Answer> answers;
    std::vector<WorkKey> reserved;  // work that entered its pool because of this batch
    std::vector<Ephemeral> ephemerals;
    std::size_t entries = 0;
    bool dirty = false;
    bool lost = false;               // the store has dropped it
    std::optional<Error> setback{};  // the store rolled back and accepts no writes at present

    /// Empties the batch; keeps its memory.
    void reset(std::size_t requests);
  };
  /// One transaction while it is decided. Reused to save allocations.
  struct Staged {
    std::vector<Draft> drafts;
    std::vector<std::optional<Change>> changes;
    std::vector<EntryView> entries;
    std::vector<std::string> extras;
  };

  /// Posts to the lane from another thread. False: the engine is closing, and the task is dropped.
  bool post(Task task);

  // The lane's work (batch.cpp).
  void drain();
  void schedule_drain();
  bool linger_for_batch();
  bool take_arrivals(std::size_t most);
  std::size_t run_taken();
  void begin_batch(std::size_t requests);
  void run_batch(std::span<Request> requests);
  void decide_batch(Batch& batch, std::span<Request> requests);
  void finish_batch(Batch& batch);
  void schedule_help();
  void prefetch(std::span<const Request> requests, std::size_t position) const;
  Result<Decided> decide_or_refuse(Batch& batch, Request& request);
  Result<Decided> decide_request(Batch& batch, Request& request);
  Result<std::vector<Instance>> outcome_of(const Batch& batch, Result<Decided> decided) const;
  Result<std::optional<std::vector<Instance>>> repeated(const Request& request);
  Result<void> check_partition() const;
  Result<Draft> draft_of(const Batch& batch, const Target& target);
  Result<void> decide_targets(const Batch& batch, const Request& request);
  Result<Seq> write(const Request& request);
  Result<void> encode_extras();
  Result<void> commit_batch(Batch& batch);
  void fail_batch(Batch& batch, const Error& error);
  void postpone(Request request);
  Time log_time();

  // Conversions for readers (read.cpp).
  Result<std::string> load_data(const InstanceId& id, std::uint16_t machine, Seq seq) const;
  Instance to_instance(const Draft& draft) const;
  Instance to_instance(const Head& head) const;
  Result<Instance> to_instance(Entry entry) const;
  LogEvent to_event(Entry entry) const;

  // Publishing (publish.cpp).
  void publish(Batch& batch);
  void publish_draft(Draft& draft, Head* head);
  void uncount(const Head& head);
  void remove_head(const Head& head);
  void evict();
  std::size_t partition_number(std::string_view partition);

  // Acting on what became durable (act.cpp).
  void act(const InstanceId& id, std::uint16_t machine, const Extras* before, const Extras* after);
  void arm_timer(const InstanceId& id, const TimerRecord& timer);
  void wake_timers();
  void wake_readers(const Batch& batch);
  void wake_watchers(const Batch& batch);
  bool is_reached(std::uint16_t machine, std::uint16_t state, const std::vector<std::string>& states) const;
  void end_waiting(const Error& why);
  void end_watching(const Error& why, Lane* lane);
  void end_serving(const Error& why);
  void watch_ownership();
  void check_ownership();

  // Work (work.cpp).
  void act_on_work(const InstanceId& id, std::uint16_t machine, const WorkRecord* older,
                   const WorkRecord& work);
  void start_work(const InstanceId& id, std::uint16_t machine, const WorkRecord& work);
  void start_later(const WorkKey& key, std::uint16_t machine, std::uint32_t attempt);
  static Result<Reply> run_handler(const WorkHandler& run, const WorkContext& context,
                                   std::string_view payload);
  void hand_back(Returned returned);
  void take_returned();
  void work_returned(WorkKey key, std::uint16_t machine, std::uint32_t attempt, Result<Reply> result,
                     Done done = {});
  Done settled_callback(std::uint16_t machine, std::string_view name) const;
  Done fail_if_refused(WorkKey key, std::uint16_t machine, std::uint32_t attempt, Done done);
  void attempt_failed(const WorkKey& key, std::uint16_t machine, const WorkRecord& work, Error error,
                      Done done, FailureEvents events = {});
  void limit_time(const WorkKey& key, std::uint32_t attempt, Duration timeout);
  void work_timed_out(WorkKey key, std::uint32_t attempt);
  void work_overdue(WorkKey key, std::uint32_t attempt);
  void replace_threads(std::ptrdiff_t more);
  void stop_work(const WorkKey& key, std::uint16_t machine, const WorkRecord& work);
  void work_cancelled(const WorkKey& key);
  void retry_later(const InstanceId& id, std::uint16_t machine, const WorkRecord& work);
  void reserve_permits(Batch& batch, Draft& draft, const Change& change);
  void request_permit(const WorkKey& key, std::uint16_t machine, const std::string& name);
  enum class Pools : std::uint8_t { all, own };  // own: kWorkThreads and kStartedAttempts
  void forget_permits(std::span<const WorkKey> keys, Pools which = Pools::all);
  void granted(const PermitChanges& changes);
  void release_unused(const Batch& batch);
  void start_attempt(const WorkKey& key);
  void attempt_not_started(const WorkKey& key);
  const Machines::Work* handler_of(std::uint16_t machine, std::string_view work) const;
  PermitPool& pool_of(std::uint16_t machine, const WorkRecord& work);
  static WorkKey key_of(const std::string& holder);
  bool may_work(const InstanceId& id, const std::optional<QueueRecord>& queue) const;
  void admit(const InstanceId& id);
  void enter_queue(const InstanceId& id, const QueueRecord& queue);
  void leave_queue(const InstanceId& id, const QueueRecord& queue);
  std::optional<QueueStatus> queue_of(const InstanceId& id, const Extras& extras) const;

  // Work that is done elsewhere (claim.cpp).
  bool is_leased(std::uint16_t machine, std::string_view work) const;
  void offer(const WorkKey& key, std::uint16_t machine, const std::string& name);
  void withdraw_offer(const WorkKey& key);
  void serve(BlockedClaim claim);
  void claim_timed_out(std::uint64_t id);
  std::optional<WorkKey> held(const Lease& lease) const;
  void hand_out(const WorkKey& key, std::uint16_t machine, const WorkRecord& work, const HeadData& data);
  void claim_failed(const WorkKey& key);
  void end_claims(const Error& why, Lane* lane);
  void lease_ended(WorkKey key, std::uint32_t attempt);
  void complete_again(const Lease& lease, const Result<Reply>& result, CompleteDone done);
  void completed(const WorkKey& key, const Result<std::vector<Instance>>& outcome);
  void deliver(const InstanceId& sender, std::uint16_t machine, const MessageRecord& message);
  void acknowledge(const InstanceId& sender, std::uint16_t machine, std::int64_t number,
                   std::optional<Error> refused);

  // Opening (open.cpp).
  Result<void> load();
  Result<void> recover();
  void resume();
  void resume_work(const Head& head, const WorkRecord& work);
  void note_unknown(const StoredHead& stored, const Head& head);

  void schedule_maintenance();
  Result<void> flush_ephemerals(Batch& batch);
  void restore_ephemerals(std::vector<Ephemeral> values);
  Result<void> open_retention_clock();
  Result<void> store_retention_clock();
  void retain_on_lane(RetainDone done);
  bool may_forget(const Head& head, Time before) const;
  void forget_step(std::vector<InstanceId> ids, Time before, Seq horizon, RetainDone done);
  Result<void> forget_instances(std::span<const InstanceId> ids);
  void cut_step(Seq horizon, RetainDone done);
  bool has_moved(const InstanceId& id, Seq seq) const;

  Runtime& runtime_;
  EngineOptions options_;
  Registry registry_;
  OpenReport report_;
  std::unique_ptr<Store> store_;
  std::string incarnation_;  // of the open store
  bool leased_ = false;      // the store's ownership is a lease

  mutable std::mutex queue_mutex_;
  std::vector<Request> queue_;
  std::size_t waiting_ = 0;         // in the queue or taken by the lane, not decided yet
  std::vector<Request> spent_;      // answered; memory goes back to the threads that allocated it
  std::vector<Returned> returned_;  // by handlers, not taken by the lane yet
  bool drain_scheduled_ = false;
  std::size_t inline_callers_ = 0;  // callers that do the lane's work, or are about to do it
  std::condition_variable inline_callers_gone_;
  std::size_t lingers_for_ = 0;  // the lane waits for so many requests; 0: it does not wait
  std::uint64_t lingers_ = 0;    // how often it has waited
  bool stopped_ = false;

  mutable std::shared_mutex heads_mutex_;
  HeadTable heads_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::size_t> counts_;  // by machine and state
  std::deque<std::string> partitions_{""};  // a draft views its partition's name
  std::vector<Seq> partition_seqs_{0};
  std::map<std::string, std::uint32_t, std::less<>> partition_numbers_;
  std::vector<std::vector<InstanceId>> partition_members_{{}};
  std::size_t cached_bytes_ = 0;
  std::size_t eviction_hand_ = 0;

  // Used by the lane only.
  std::vector<Request> taken_;  // from the queue; decided up to `taken_position_`
  std::vector<Returned> taken_back_;
  std::size_t taken_position_ = 0;
  Batch batch_;
  std::atomic<bool> deciding_{false};  // a batch is under way; detects a second one
  Staged staged_;
  /// Data that a batch has replaced, freed one by one while the next batch allocates: an allocator alternates
  /// far faster than it frees thousands at once.
  std::vector<HeadData> retired_;
  std::size_t last_batch_ = 0;                     // requests answered by the last one
  std::size_t usual_batch_ = 0;                    // how many requests recent batches had
  std::atomic<Duration> commit_time_{Duration{}};  // of the last one
  Time last_at_{};
  std::optional<Error> poisoned_;
  std::vector<Request> postponed_;  // internal requests, until the disk has room or can be read
  Duration pause_ = kPause;         // how long the next ones wait
  TimerQueue timers_;
  std::optional<TimerId> timer_wake_;
  std::optional<Instant> timer_wake_at_;
  std::unordered_map<WorkKey, RunningWork, WorkKeyHash> running_;
  std::size_t replaced_ = 0;  // additional threads, for handlers that do not stop
  std::map<std::pair<std::uint16_t, std::string>, std::deque<WorkKey>> offers_;  // oldest first
  std::set<WorkKey> offered_;
  std::set<WorkKey> unclaimed_;               // offered, with an attempt that is recorded already
  std::map<WorkKey, BlockedClaim> claiming_;  // until their attempt has started
  std::map<std::uint64_t, BlockedClaim> claims_;
  std::uint64_t last_claim_ = 0;
  std::map<WorkKey, Completing> completing_;
  std::unordered_multimap<InstanceId, Watcher> watchers_;
  std::uint64_t last_watcher_ = 0;
  mutable std::mutex pools_mutex_;
  std::map<std::string, PermitPool, std::less<>> pools_;

  BlockedCalls blocked_calls_;

  mutable std::mutex ephemeral_mutex_;
  std::map<std::pair<InstanceId, std::string>, Ephemeral> ephemerals_pending_;

  std::atomic<Seq> durable_seq_{0};
  std::atomic<std::uint64_t> transitions_{0};
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> conflicts_{0};
  std::atomic<std::size_t> timer_count_{0};
  std::atomic<std::size_t> timers_due_{0};
  Buckets<12> commit_seconds_{
      {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5}};
  Buckets<8> batch_sizes_{{1, 4, 16, 64, 256, 1024, 2048, 4096}};
  std::atomic<std::size_t> running_count_{0};
  std::atomic<bool> checkpoint_scheduled_{false};
  std::atomic<bool> help_scheduled_{false};
  std::atomic<bool> ownership_watched_{false};
  bool retention_scheduled_ = false;
  RetentionClock retention_clock_;
  mutable std::mutex forget_mutex_;          // held while the store and then the memory forget instances
  mutable std::shared_mutex closing_mutex_;  // a subscription may outlive the engine, and with it the store

  // Tasks use the plain pointers, which stay the same while `close` resets the owners.
  Lane* maintenance_ = nullptr;
  Lane* helper_ = nullptr;
  Lane* lane_ = nullptr;
  ThreadPool* workers_ = nullptr;
  std::unique_ptr<Lane> maintenance_owner_;
  std::unique_ptr<Lane> helper_owner_;
  std::unique_ptr<Lane> lane_owner_;
  std::unique_ptr<ThreadPool> workers_owner_;
};

}  // namespace pawl
