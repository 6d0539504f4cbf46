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
/// A second start of the same flow and id finds the run that is not finished. After a crash every run goes on
/// from its last commit, with its attempts counted.

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
  std::size_t children = 1000;                        ///< of one run
  Logger log{};
};

/// Unfinished runs at one step, found when the program started.
struct RunsAtStep {
  std::string flow;
  std::string step;
  std::size_t runs = 0;
  bool known = true;  ///< false: the flow has no such step, and no rename says where they go on; untouched
};

struct RunQuery {
  std::string flow{};   ///< empty: all
  std::string state{};  ///< by name
  std::optional<bool> finished{};
  std::string queue{};        ///< only those that stand in its line or have their place
  bool newest_first = false;  ///< else in the order of their creation
  std::string cursor{};       ///< `next` of the page before, in the same order
  std::size_t limit = 100;
};

/// One thing that took time in a run, for a picture of it.
struct RunSpan {
  enum class Kind : std::uint8_t { delay, wait, queue, attempt, backoff, join, pause };
  Kind kind = Kind::attempt;
  std::string step{};
  std::uint32_t attempt = 0;
  Time from{};
  std::optional<Time> to{};  ///< none: it goes on
  std::string outcome{};     ///< done, failed, interrupted, rewound, …
  std::string error{};
};

struct RunTimeline {
  Run run;
  std::vector<RunSpan> spans;  ///< in the order of their begin
  bool truncated = false;      ///< retention has cut the beginning
};

/// A step that was claimed, with everything that is needed to do it.
struct ClaimedStep {
  Lease lease;
  std::string run_ulid;
  std::string step;
  std::string request;   ///< JSON
  std::string response;  ///< JSON
  std::string request_id;
  Duration duration{};
};

/// What a worker elsewhere makes of a step.
struct RemoteOutcome {
  Outcome outcome = Outcome::done();
  std::optional<std::string> response{};  ///< JSON
};

/// How many runs have ended how, and steps, since the start; for metrics.
struct FlowCounts {
  std::string flow;
  std::string step;  ///< empty: the runs themselves
  std::string outcome;
  std::uint64_t count = 0;
};

class FlowsCore;

/// Thread-safe once it is attached. Lives longer than the engine it is attached to.
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
  /// Each flow as a machine of its name, each step as a kind of its work.
  void add_machines(Machines& machines);
  /// Everything that is wrong with the flows. Errors: those of `FlowDefinition::validate`.
  Result<void> validate() const;

  /// Begins to serve. Work that was interrupted waits for this.
  Result<std::vector<RunsAtStep>> attach(Engine& engine);
  /// Before the engine is destroyed, where this lives on.
  void detach();

  std::vector<const FlowDefinition*> flows() const;

  // Runs.

  /// Errors: `unknown_name` for the flow, the step to begin at or the upstream run's flow; `unknown_pool`;
  /// `unknown_instance` for the upstream run; `invalid_argument` for a cycle; what `decode` says of the
  /// request; `request_id_reused`.
  Result<Run> start(std::string_view flow, std::string request, RunOptions options = {});
  template <class Request, class Response>
  Result<Run> start(const Flow<Request, Response>& flow, const Request& request, RunOptions options = {}) {
    PAWL_TRY(auto text, encode(request));
    return start(flow.name(), std::move(text), std::move(options));
  }
  /// The same without waiting; `done` runs like that of `Engine::submit`.
  void start(std::string_view flow, std::string request, RunOptions options,
             std::move_only_function<void(Result<Run>)> done);

  /// Errors: `unknown_name`, `unknown_instance`.
  Result<Run> get(std::string_view flow, std::string_view id) const;
  /// By the run's ULID, in whatever flow. Error: `unknown_instance`.
  Result<Run> find(std::string_view ulid) const;
  Result<RunPage> list(const RunQuery& query) const;
  /// Waits for the end. Errors: `timed_out`; those of `get`.
  Result<Run> wait(std::string_view flow, std::string_view id, std::optional<Duration> timeout = {}) const;
  /// The same without waiting; `done` runs like that of `Engine::submit`.
  void wait(std::string_view flow, std::string_view id, std::optional<Duration> timeout,
            std::move_only_function<void(Result<Run>)> done) const;
  Result<RunTimeline> timeline(std::string_view flow, std::string_view id) const;

  template <class Request, class Response>
  static Result<Response> response(const Flow<Request, Response>&, const Run& run) {
    return decode<Response>(run.response);
  }

  // A change that is repeated with the same request id and content gets the outcome of the first. Error:
  // `request_id_reused`.

  /// A running step is asked to stop; then what was done is undone. Errors: `finished_instance`,
  /// `illegal_event` where it closes already.
  Result<Run> cancel(std::string_view flow, std::string_view id, std::string reason,
                     std::string request_id = {});
  /// Nothing new begins; a running step may go on to its end.
  Result<Run> pause(std::string_view flow, std::string_view id, std::string request_id = {});
  Result<Run> resume(std::string_view flow, std::string_view id, std::string request_id = {});
  /// Goes on at a step (empty: the present one; of a finished run, the one that it ended at). A running step
  /// is asked to stop first. A run that still waits for its begin begins there. A finished run is started
  /// again, with its response so far.
  Result<Run> retry(std::string_view flow, std::string_view id, std::string step = {},
                    std::string request_id = {});

  // Steps that are done elsewhere.

  /// The oldest waiting step of these names (empty: of all that can be claimed).
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
