// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Keeps a tree of workers as it is desired, over crashes of the program.
///
///     pawl::Supervisor supervisor(runtime, std::move(types));  // pawl/worker_types.hpp
///     pawl::Machines machines;
///     supervisor.add_machines(machines);
///     auto engine = pawl::Engine::open(runtime, std::move(machines)).value();
///     supervisor.attach(*engine).value();                      // the tree of the last time goes on
///
///     supervisor.apply({.children = {{.name = "pump", .worker_type = "pump",
///                                     .user_spec = {.config = R"({"rpm": 100})"}}}}).value();
///     supervisor.park("pump").value();                         // it comes to rest, and stays
///     supervisor.show("pump").value().state;                   // "Stopped", after a while
///     supervisor.drain(5s);                                    // everything rests, children first
///
/// All decisions are made by one thread, one after the other, each on one snapshot: there is nothing to lock
/// and no order of locks to keep. Observing and acting happen on shared pools and never hold it up. Nothing
/// is acted on before it is durable; a worker whose observation does not change writes nothing.

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
  Duration tick = std::chrono::milliseconds(100);  ///< deadlines are kept to this; see `strict`
  bool strict = false;  ///< ask every worker at each tick, not only where something changed
  Duration observe_every = std::chrono::seconds(1);
  Duration observe_timeout = std::chrono::milliseconds(2200);  ///< of one collection
  Duration stale_after = std::chrono::seconds(10);             ///< then nothing is decided any more
  Duration lost_after = std::chrono::seconds(20);              ///< then collecting is begun anew
  std::uint32_t collector_restarts = 3;                        ///< then the worker is built afresh
  Duration restart_within = std::chrono::seconds(30);          ///< then without its stop path
  Duration drain_base = std::chrono::seconds(5);               ///< per level of the tree
  std::size_t collectors = 8;                                  ///< collections at the same time
  std::size_t abandoned_max = 16;                              ///< hung collections that are not waited for
  Duration collect_stop_within = std::chrono::seconds(5);      ///< at the end; then they are left alone
  std::uint32_t actions = 8;                                   ///< actions at the same time
  RetryPolicy backoff{.retries = RetryPolicy::kUnlimited,
                      .first = std::chrono::seconds(1),
                      .factor = 2.0,
                      .cap = std::chrono::seconds(60),
                      .jitter = Jitter::equal};  ///< between failed actions, failed creations and probes
  std::uint32_t breaker_throws =
      3;  ///< exceptions within `breaker_window` after which a worker is left alone
  Duration breaker_window = std::chrono::minutes(5);
  std::size_t depth_max = 16;
  std::size_t children_max = 200'000;
  /// How configurations are read; by default as JSON. In place of each `{{ .NAME }}` there is one word
  /// without blanks and punctuation, in private-use characters: values are put in after reading, so that none
  /// is taken for syntax. See `unquoted_text`.
  std::function<Result<ConfigDocument>(std::string_view text)> read_config{};
  /// Gets every decision; see `pawl/supervisor_kit.hpp`.
  std::function<void(const TraceEntry&)> trace{};
  Logger log{};
};

/// How a worker is, beside its state.
enum class Health : std::uint8_t {
  good,
  unobserved,    ///< not observed yet
  stale,         ///< the last observation is too old to decide on
  lost,          ///< collecting is begun anew
  config_error,  ///< its configuration cannot be read; it goes on with the last good one, if there is one
  open,          ///< it threw too often and is left alone for a while
  failing,       ///< its last action failed, or it is in a degraded state
};

struct WorkerView {
  WorkerIdentity identity;
  std::string state;
  Phase phase = Phase::stopped;
  std::string reason;
  Health health = Health::good;
  std::string problem{};  ///< what `health` is about, and the last error
  Intent intent = Intent::run;
  std::int64_t desired_version = 0;
  Json desired{};  ///< as the worker reads it; null where it cannot be read
  UserSpec spec{};
  Json observed{};
  std::optional<Duration> observed_ago{};
  Duration in_state{};
  std::string action{};  ///< the one that is ordered
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

/// What the whole tree should be: the desired state of its top.
struct TreeSpec {
  std::vector<ChildSpec> children{};
  Variables variables{};  ///< handed down to all
  bool operator==(const TreeSpec&) const = default;
};

struct AttachReport {
  std::size_t workers = 0;
  /// Paths of workers of which this program does not have the type, the state or the parent; untouched.
  std::vector<std::string> unknown{};
};

struct DrainReport {
  bool clean = true;
  std::vector<std::string> cut{};  ///< workers that did not come to rest in time
};

/// Counters since the start, for metrics.
struct SupervisorStats {
  std::size_t workers = 0;
  std::uint64_t decisions = 0;
  std::uint64_t transitions = 0;
  std::uint64_t actions = 0;
  std::uint64_t actions_failed = 0;
  std::uint64_t collections = 0;
  std::uint64_t collections_failed = 0;
  std::uint64_t collector_restarts = 0;
  std::size_t abandoned = 0;  ///< collections that hang
  std::uint64_t observations_written = 0;
  std::uint64_t restarts = 0;
  std::uint64_t config_errors = 0;
  std::uint64_t exceptions = 0;
  std::uint64_t ticks = 0;
};

class SupervisorCore;

/// Thread-safe once it is attached.
class Supervisor {
 public:
  /// Throws std::invalid_argument where the options contradict each other.
  Supervisor(Runtime& runtime, WorkerTypes types, SupervisorOptions options = {});
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Before the engine opens: each type as a machine, each action as a kind of its work, and the permit pool
  /// "worker_actions" of the size `SupervisorOptions::actions`.
  void add_machines(Machines& machines);
  static constexpr std::string_view kPool = "worker_actions";

  /// Begins to supervise what the store holds.
  Result<AttachReport> attach(Engine& engine);
  /// Stops deciding and collecting, at once; workers stay as they are. Destroying the supervisor or the
  /// engine, in any order, does so too.
  void detach();

  // What is desired.

  /// The whole tree. Nothing is changed where any part of it is refused. With a version, only if nobody else
  /// has changed it since. Returns the new version. Errors: `spec_invalid`, `unknown_worker_type`, each with
  /// the path of the worker in the field `worker`; `desired_conflict`.
  Result<std::int64_t> apply(const TreeSpec& tree, std::optional<std::int64_t> expected_version = {});
  /// What was applied last, and its version.
  Result<std::pair<TreeSpec, std::int64_t>> applied() const;
  /// Adds or changes one worker at the top.
  Result<std::int64_t> upsert(const ChildSpec& child);
  /// Removes one at the top; a worker further down goes when its parent's configuration does not name it any
  /// more.
  Result<std::int64_t> remove(std::string_view name);
  /// Checks as `apply` does, and changes nothing.
  Result<void> check(const TreeSpec& tree) const;

  // What people ask for; durable, and kept until they ask for something else.

  Result<void> park(std::string_view path);
  Result<void> run(std::string_view path);
  Result<void> restart(std::string_view path, std::string reason);

  // What there is.

  /// Error: `unknown_instance`.
  Result<WorkerView> show(std::string_view path) const;
  /// All workers, parents before their children.
  std::vector<WorkerView> tree() const;
  /// Their paths alone, in the same order, and how many there are by type and phase: much less work.
  std::vector<std::string> paths() const;
  std::map<std::string, std::map<Phase, std::size_t>> counts() const;
  /// How many there are by type and health, equally cheap.
  std::map<std::string, std::map<Health, std::size_t>> health_counts() const;
  SupervisorStats stats() const;
  const WorkerTypes& types() const;

  /// Lets every worker come to rest, children before their parents, each level within the base. Not durable:
  /// when the program starts again, they go on. Returns early where `force` is called.
  DrainReport drain(std::optional<Duration> base = {});
  /// Ends a drain that waits.
  void force();

 private:
  std::shared_ptr<SupervisorCore> core_;
};

}  // namespace pawl
