// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an engine returns about its instances.
///
///     pawl::Snapshot<door> front = engine->get<door>("front").value();
///     if (front.state == Door::open) fmt::print("opened {} times\n", front.data.opened);
///
/// Everything here is a value: it does not change when the instance changes.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/error.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/machine.hpp"
#include "pawl/names.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// A timer that is set.
struct TimerStatus {
  std::string name;
  Time due{};
  std::string event;
};

/// A piece of work that is not consumed yet.
struct WorkStatus {
  std::int64_t number = 0;
  std::string name;
  std::uint32_t attempt = 0;         ///< executions started; 0: waits for a permit
  std::optional<Time> not_before{};  ///< waits for its next attempt
};

/// The queue that an instance is in; see `Effects::enter_queue`.
struct QueueStatus {
  std::string pool;
  std::int32_t priority = 0;
  bool admitted = false;  ///< it has the permit
};

/// An instance by names and JSON.
struct Instance {
  InstanceId id;
  std::string machine;
  std::string key;
  std::string partition;  ///< empty if the instance is its own partition
  std::string state;
  bool finished = false;
  std::int64_t version = 0;  ///< grows by one with each commit of the instance
  std::int64_t generation = 1;
  std::int64_t seq = 0;  ///< its newest entry in the log
  Time created_at{};
  Time at{};
  std::string data;  ///< JSON
  std::vector<TimerStatus> timers;
  std::vector<WorkStatus> work;
  std::optional<QueueStatus> queue{};
  std::shared_ptr<const void> value{};  ///< the decoded `data`, if it was available
};

/// An instance of a machine that is known at compile time.
template <const auto& M>
struct Snapshot {
  std::string key;
  StateOf<M> state{};
  DataOf<M> data{};
  std::int64_t version = 0;
  std::int64_t generation = 1;
  std::int64_t seq = 0;
  bool finished = false;
  Time at{};
};

/// Errors: `unknown_state`, and those of `decode`.
template <const auto& M>
Result<Snapshot<M>> to_snapshot(Result<Instance> instance) {
  if (!instance) return fail(std::move(instance).error());
  Snapshot<M> made{.key = std::move(instance->key),
                   .version = instance->version,
                   .generation = instance->generation,
                   .seq = instance->seq,
                   .finished = instance->finished,
                   .at = instance->at};
  PAWL_TRY(made.data, decode<DataOf<M>>(instance->data));
  for (const auto state : enum_values<StateOf<M>>) {
    if (state_name<M>(state) != instance->state) continue;
    made.state = state;
    return made;
  }
  return fail(Code::unknown_state, std::string(M.traits.name) + " \"" + made.key +
                                       "\" is in the unknown state " + instance->state);
}

/// One entry of the log, as subscribers and histories see it.
struct LogEvent {
  std::int64_t seq = 0;
  std::string cursor;  ///< a subscription that begins here continues with the next entry
  Time at{};
  std::string kind;  ///< created, fired, recovery, work, timer or message
  InstanceId id;
  std::string machine;
  std::string key;
  std::string event;
  std::string payload;  ///< JSON
  std::string state;    ///< after the entry
  std::int64_t version = 0;
  std::int64_t generation = 1;
  std::string data;  ///< JSON, after the entry
  bool finished = false;
};

struct History {
  std::vector<LogEvent> events;  ///< newest first
  bool truncated = false;        ///< retention has cut older entries
  std::int64_t next = 0;         ///< `before` of the next page; 0 on the last one
};

/// Which instances to list. Empty fields do not restrict.
struct ListQuery {
  std::string machine{};
  std::vector<std::string> machines{};  ///< any of these
  std::string state{};
  std::string prefix{};  ///< of the key
  std::string queue{};   ///< in the queue of this pool, waiting or admitted; see `Effects::enter_queue`
  std::string partition{};
  std::optional<Time> created_after{};
  std::optional<Time> changed_after{};
  std::optional<Time> changed_before{};
  std::optional<bool> finished{};
  bool newest_first = false;  ///< otherwise oldest first, by creation
  std::string cursor{};       ///< `next` of the previous page, in the same order
  std::size_t limit = 100;
};

struct InstancePage {
  std::vector<Instance> instances;
  std::string next;  ///< cursor of the next page; empty on the last one
};

struct PoolStatus {
  std::string name;
  std::uint32_t size = 0;
  std::uint32_t granted = 0;
  std::size_t waiting = 0;
};

/// The number of values in each bucket.
struct Histogram {
  std::vector<double> bounds;         ///< ascending; upper bounds of the buckets, inclusive
  std::vector<std::uint64_t> counts;  ///< one more than bounds: the last counts values above every bound
  double sum = 0;
};

/// Counters since the engine opened, for metrics.
struct EngineStats {
  std::uint64_t transitions = 0;  ///< entries made durable
  std::uint64_t commits = 0;      ///< durable commits, each for a batch
  std::uint64_t refused = 0;
  std::uint64_t conflicts = 0;
  std::size_t instances = 0;
  std::size_t queue = 0;
  std::size_t timers = 0;
  std::size_t timers_due = 0;  ///< due, but the event is not durable yet
  std::size_t running_work = 0;
  std::size_t cached_bytes = 0;
  std::size_t memory_per_instance = 0;  ///< the engine's own bytes, without data and keys
  std::int64_t last_seq = 0;
  Histogram commit_seconds{};  ///< how long a durable commit takes
  Histogram batch_sizes{};     ///< entries per commit
};

}  // namespace pawl
