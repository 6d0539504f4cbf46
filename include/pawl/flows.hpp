// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The flows of a program, and their runs.
///
///     pawl::Flows flows(runtime);
///     flows.add(ship);                                             // pawl/flow.hpp
///     pawl::Machines machines;
///     flows.add_machines(machines);
///     auto engine = pawl::Engine::open(runtime, std::move(machines), {.pools = {{"downloads", 5}}}).value();
///     flows.attach(*engine).value();
///
///     auto run = flows.start(ship, Order{.sku = "lamp", .cents = 1200}, {.id = "order-17"}).value();
///     auto ended = flows.wait("ship", run.id).value();              // done, failed, …
///     auto shipment = flows.response(ship, ended).value();
///
/// A second start of the same flow and id returns the unfinished run. After a crash every run continues from
/// its last commit; interrupted attempts count.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/flow.hpp"
#include "pawl/lease.hpp"
#include "pawl/log.hpp"
#include "pawl/machines.hpp"
#include "pawl/run.hpp"
#include "pawl/runtime.hpp"
#include "pawl/time.hpp"

namespace pawl {

struct FlowsOptions {
  std::size_t response_bytes = std::size_t{1} << 18;  ///< a longer response fails the run
  std::size_t children = 1000;                        ///< maximum per run
  Logger log{};
};

/// Unfinished runs at one step when the program started.
struct RunsAtStep {
  std::string flow;
  std::string step;
  std::size_t runs = 0;
  bool known =
      true;  ///< false: the flow has no such step and no rename for it; the runs are left as they are
};

struct RunQuery {
  std::string flow{};   ///< empty: all
  std::string state{};  ///< by name
  std::optional<bool> finished{};
  std::string queue{};        ///< only runs that wait in this queue or have been admitted by it
  bool newest_first = false;  ///< otherwise in order of creation
  std::string cursor{};       ///< `next` of the previous page, in the same order
  std::size_t limit = 100;
};

/// A span of time in a run, for a timeline.
struct RunSpan {
  enum class Kind : std::uint8_t { delay, wait, queue, attempt, backoff, join, pause };
  Kind kind = Kind::attempt;
  std::string step{};
  std::uint32_t attempt = 0;
  Time from{};
  std::optional<Time> to{};  ///< absent: it is not over
  std::string outcome{};     ///< done, failed, interrupted, rewound, …
  std::string error{};
};

struct RunTimeline {
  Run run;
  std::vector<RunSpan> spans;  ///< in order of their start
  bool truncated = false;      ///< retention has removed the beginning
};

/// A claimed step, with everything needed to do it.
struct ClaimedStep {
  Lease lease;
  std::string run_ulid;
  std::string step;
  std::string request;   ///< JSON
  std::string response;  ///< JSON
  std::string request_id;
  Duration duration{};
};

/// Outcome of a step that an external worker did.
struct RemoteOutcome {
  Outcome outcome = Outcome::done();
  std::optional<std::string> response{};  ///< JSON
};

/// How many steps have ended with an outcome since the program started; for metrics.
struct FlowCounts {
  std::string flow;
  std::string step;
  std::string outcome;
  std::uint64_t count = 0;
};

class FlowsCore;

/// Thread-safe once attached. Must outlive the engine to which it is attached.
class Flows {
 public:
  explicit Flows(Runtime& runtime, FlowsOptions options = {});
  ~Flows();
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  // Before the engine opens.

  template <class Request, class Response>
  Flows& add(const Flow<Request, Response>& flow) {
    return add(flow.definition());
  }
  Flows& add(std::shared_ptr<const FlowDefinition> definition);
  /// Adds each flow as a machine of its name, and each step as a kind of work.
  void add_machines(Machines& machines);
  /// Errors: the first of those that `FlowDefinition::validate` found; `duplicate_machine`.
  Result<void> validate() const;

  /// Starts to serve; interrupted work waits for this. Returns the steps of unfinished runs.
  Result<std::vector<RunsAtStep>> attach(Engine& engine);
  /// Call this before the engine is destroyed if `Flows` lives on.
  void detach();

  std::vector<const FlowDefinition*> flows() const;

  // Runs.

  /// Errors: `unknown_name` for the flow, the step to start at or the upstream run's flow; `unknown_pool`;
  /// `unknown_instance` for the upstream run; `invalid_argument` for a cycle; those of `decode` for the
  /// request; `request_id_reused`.
  Result<Run> start(std::string_view flow, std::string request, RunOptions options = {});
  template <class Request, class Response>
  Result<Run> start(const Flow<Request, Response>& flow, const Request& request, RunOptions options = {}) {
    PAWL_TRY(auto text, encode(request));
    return start(flow.name(), std::move(text), std::move(options));
  }
  /// Does not block; `done` is called like that of `Engine::submit`.
  void start(std::string_view flow, std::string request, RunOptions options,
             std::move_only_function<void(Result<Run>)> done);

  /// Errors: `unknown_name`, `unknown_instance`.
  Result<Run> get(std::string_view flow, std::string_view id) const;
  /// Finds a run of any flow by its ULID. Error: `unknown_instance`.
  Result<Run> find(std::string_view ulid) const;
  Result<RunPage> list(const RunQuery& query) const;
  /// Waits until the run has finished. Errors: `timed_out`; those of `get`.
  Result<Run> wait(std::string_view flow, std::string_view id, std::optional<Duration> timeout = {}) const;
  /// Does not block; `done` is called like that of `Engine::submit`.
  void wait(std::string_view flow, std::string_view id, std::optional<Duration> timeout,
            std::move_only_function<void(Result<Run>)> done) const;
  Result<RunTimeline> timeline(std::string_view flow, std::string_view id) const;

  template <class Request, class Response>
  static Result<Response> response(const Flow<Request, Response>&, const Run& run) {
    return decode<Response>(run.response);
  }

  // A repeat with the same request id and content gets the outcome of the first request. Error:
  // `request_id_reused`.

  /// Asks a running step to stop, then undoes the steps. Errors: `finished_instance`, `illegal_event` if the
  /// run is closing.
  Result<Run> cancel(std::string_view flow, std::string_view id, std::string reason,
                     std::string request_id = {});
  /// Starts nothing new; a running step may finish.
  Result<Run> pause(std::string_view flow, std::string_view id, std::string request_id = {});
  Result<Run> resume(std::string_view flow, std::string_view id, std::string request_id = {});
  /// Continues at a step (empty: the current one; for a finished run, the one at which it ended). Asks a
  /// running step to stop first. A run that has not started its first step will start there. A finished run
  /// is started again with its last response.
  Result<Run> retry(std::string_view flow, std::string_view id, std::string step = {},
                    std::string request_id = {});

  // Steps done by external workers.

  /// Claims the oldest waiting step of these names (empty: any claimable step); nothing if none comes in
  /// time.
  void claim(std::string_view flow, std::vector<std::string> steps, Duration wait,
             std::move_only_function<void(Result<std::optional<ClaimedStep>>)> done);
  void heartbeat(const Lease& lease, std::optional<double> progress, std::string_view text,
                 std::move_only_function<void(Result<LeaseStatus>)> done);
  /// A repeat with the same lease, outcome and response gets the outcome of the first, until another attempt
  /// or another step of the run is completed. Error: `lease_lost`.
  void complete(const Lease& lease, RemoteOutcome outcome, std::move_only_function<void(Result<void>)> done);

  std::vector<FlowCounts> counts() const;

 private:
  std::shared_ptr<FlowsCore> core_;
};

}  // namespace pawl
