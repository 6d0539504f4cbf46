// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Keeps a tree of workers in its desired state, across crashes of the program.
///
///     pawl::Supervisor supervisor(runtime, std::move(types));  // pawl/worker_types.hpp
///     pawl::Machines machines;
///     supervisor.add_machines(machines);
///     auto engine = pawl::Engine::open(runtime, std::move(machines),
///                                      {.pools = {{std::string(supervisor.kPool), 8}}})
///                       .value();
///     supervisor.attach(*engine).value();                      // continues with the stored tree
///
///     supervisor.apply({.children = {{.name = "pump", .worker_type = "pump",
///                                     .user_spec = {.config = R"({"rpm": 100})"}}}}).value();
///     supervisor.park("pump").value();                         // stops it until `run`
///     supervisor.show("pump").value().state;                   // "Stopped", after a while
///     supervisor.drain(5s);                                    // stops all workers, children first
///
/// One thread makes all decisions, each on one snapshot, so there are no locks to take in order. Collections
/// and actions run on shared pools and never block that thread. A decision is durable before it takes effect;
/// a worker whose observation does not change writes nothing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/log.hpp"
#include "pawl/machines.hpp"
#include "pawl/retry.hpp"
#include "pawl/runtime.hpp"
#include "pawl/time.hpp"
#include "pawl/worker_spec.hpp"
#include "pawl/worker_types.hpp"

namespace pawl {

/// Text of a configuration as JSON; the line (from 1) of each value by its path, such as
/// "$.children[0].name".
struct ConfigDocument {
  std::string json;
  std::map<std::string, int, std::less<>> lines{};
};

struct TraceEntry;

struct SupervisorOptions {
  Duration tick = std::chrono::milliseconds(100);  ///< resolution of deadlines
  bool strict = false;  ///< evaluate every worker at each tick, not only after a change
  Duration observe_every = std::chrono::seconds(1);
  Duration observe_timeout = std::chrono::milliseconds(2200);  ///< of one collection
  Duration stale_after = std::chrono::seconds(10);             ///< then decisions pause, except stopping
  Duration lost_after = std::chrono::seconds(20);              ///< then collecting is restarted
  std::uint32_t collector_restarts = 3;                        ///< then the worker is restarted
  Duration restart_within = std::chrono::seconds(30);      ///< after this time a restart skips the stop path
  Duration drain_base = std::chrono::seconds(5);           ///< per level of the tree
  std::size_t collectors = 8;                              ///< concurrent collections
  std::size_t abandoned_max = 16;                          ///< hung collections whose threads are replaced
  Duration collect_stop_within = std::chrono::seconds(5);  ///< on detach; then hung collections are abandoned
  std::uint32_t actions = 8;                               ///< concurrent actions
  RetryPolicy backoff{.retries = RetryPolicy::kUnlimited,
                      .first = std::chrono::seconds(1),
                      .factor = 2.0,
                      .cap = std::chrono::seconds(60),
                      .jitter = Jitter::equal};  ///< after failed actions, failed creations and open breakers
  std::uint32_t breaker_throws =
      3;  ///< exceptions within `breaker_window` that open the breaker: decisions pause
  Duration breaker_window = std::chrono::minutes(5);
  std::size_t depth_max = 16;
  std::size_t children_max = 200'000;
  /// Reads a configuration; by default as JSON. Each `{{ .NAME }}` is replaced by a word of private-use
  /// characters without spaces and punctuation. Values are inserted after reading, so that none is taken for
  /// syntax. See `unquoted_text`.
  std::function<Result<ConfigDocument>(std::string_view text)> read_config{};
  /// Called with every decision; see `pawl/supervisor_kit.hpp`.
  std::function<void(const TraceEntry&)> trace{};
  Logger log{};
};

/// The health of a worker, independent of its state.
enum class Health : std::uint8_t {
  good,
  unobserved,    ///< not observed yet
  stale,         ///< the last observation is too old for decisions
  lost,          ///< collecting is being restarted
  config_error,  ///< its configuration is invalid; the last valid one, if any, stays in use
  open,          ///< its breaker is open after too many exceptions; decisions pause
  failing,       ///< its last action failed, or it is in a degraded state
};

struct WorkerView {
  WorkerIdentity identity;
  std::string state;
  Phase phase = Phase::stopped;
  std::string reason;
  Health health = Health::good;
  std::string problem{};  ///< the cause of `health`, or the last error
  Intent intent = Intent::run;
  std::int64_t desired_version = 0;
  Json desired{};  ///< as the worker reads it; null if invalid
  UserSpec spec{};
  Json observed{};
  std::optional<Duration> observed_ago{};
  Duration in_state{};
  std::string action{};  ///< the ordered action; empty if none
  std::uint32_t failures = 0;
  std::optional<Duration> next_try{};
  std::uint32_t collector_restarts = 0;
  std::uint32_t incarnation = 1;
  std::int64_t transitions = 0;  ///< since the program started
  bool restarting = false;
  std::size_t children = 0;
  std::size_t children_healthy = 0;
  std::vector<std::string> child_paths{};
};

/// The whole tree: the desired state of its top.
struct TreeSpec {
  std::vector<ChildSpec> children{};
  Variables variables{};  ///< inherited by all workers
  bool operator==(const TreeSpec&) const = default;
};

struct AttachReport {
  std::size_t workers = 0;
  /// Paths of workers whose type, state or parent this program does not have; they are not touched.
  std::vector<std::string> unknown{};
};

struct DrainReport {
  bool clean = true;
  std::vector<std::string> cut{};  ///< paths of workers that did not stop in time
};

/// Counters since the supervisor was created.
struct SupervisorStats {
  std::size_t workers = 0;
  std::uint64_t decisions = 0;
  std::uint64_t transitions = 0;
  std::uint64_t actions = 0;
  std::uint64_t actions_failed = 0;
  std::uint64_t collections = 0;
  std::uint64_t collections_failed = 0;
  std::uint64_t collector_restarts = 0;
  std::size_t abandoned = 0;  ///< collections that were abandoned and have not returned
  std::uint64_t observations_written = 0;
  std::uint64_t restarts = 0;
  std::uint64_t config_errors = 0;
  std::uint64_t exceptions = 0;
  std::uint64_t ticks = 0;
};

class SupervisorCore;

/// Thread-safe after `attach`.
class Supervisor {
 public:
  /// Throws std::invalid_argument if the options are invalid or contradict each other.
  Supervisor(Runtime& runtime, WorkerTypes types, SupervisorOptions options = {});
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Adds each type as a machine, each action as work of it, and the permit pool "worker_actions" of size
  /// `SupervisorOptions::actions`. Call this before the engine opens.
  void add_machines(Machines& machines);
  static constexpr std::string_view kPool = "worker_actions";

  /// Begins to supervise the stored tree.
  Result<AttachReport> attach(Engine& engine);
  /// Stops deciding and collecting at once; workers stay as they are. No-op if not attached. Destroying the
  /// supervisor or the engine, in any order, detaches as well.
  void detach();

  // Desired state.

  /// Replaces the whole tree, or changes nothing if any part of it is invalid. Returns the new version.
  /// Errors: `spec_invalid` and `unknown_worker_type`, each with the path of the worker in the field
  /// `worker`; `desired_conflict` if the tree is not at `expected_version`.
  Result<std::int64_t> apply(const TreeSpec& tree, std::optional<std::int64_t> expected_version = {});
  /// The tree that was applied last, and its version.
  Result<std::pair<TreeSpec, std::int64_t>> applied() const;
  /// Adds or changes a worker at the top level.
  Result<std::int64_t> upsert(const ChildSpec& child);
  /// Removes a worker at the top level. To remove another one, change its parent's configuration.
  Result<std::int64_t> remove(std::string_view name);
  /// Validates a tree as `apply` does.
  Result<void> check(const TreeSpec& tree) const;

  // Operations on one worker. Durable, and kept until the next one.

  Result<void> park(std::string_view path);
  Result<void> run(std::string_view path);
  Result<void> restart(std::string_view path, std::string reason);

  // Inspection.

  /// Error: `unknown_instance`.
  Result<WorkerView> show(std::string_view path) const;
  /// All workers, parents before their children.
  std::vector<WorkerView> tree() const;
  /// Their paths in the same order, and their number by type and phase. Both are much cheaper than `tree`.
  std::vector<std::string> paths() const;
  std::map<std::string, std::map<Phase, std::size_t>> counts() const;
  /// How many there are by type and health, equally cheap.
  std::map<std::string, std::map<Health, std::size_t>> health_counts() const;
  SupervisorStats stats() const;
  const WorkerTypes& types() const;

  /// Stops every worker, children before their parents, and waits at most `base` per level of the tree. Not
  /// durable: after the next start the workers continue. `force` ends the waiting.
  DrainReport drain(std::optional<Duration> base = {});
  /// Ends a waiting `drain`.
  void force();

 private:
  std::shared_ptr<SupervisorCore> core_;
};

}  // namespace pawl
