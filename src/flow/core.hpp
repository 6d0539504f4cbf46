// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Implementation of `Flows`: the definitions, the handlers of their steps, and the engine once attached.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flow/run_machine.hpp"
#include "pawl/flows.hpp"
#include "pawl/ulid.hpp"

namespace pawl {

/// Reported progress of a step.
struct Progress {
  std::string_view run_ulid;
  std::string_view step;
  double fraction = 0;
  std::string_view text;
};
void store_progress(Engine& engine, std::string_view flow, std::string_view id, const Progress& progress);
void add_progress(Run& run, const std::map<std::string, std::string>& ephemerals);

/// Builds the timeline of a run from its entries, oldest first.
std::vector<RunSpan> to_spans(const std::vector<LogEvent>& events, const Run& run);

/// What a step requested besides its outcome; `completion` is set if a worker completed it.
struct StepRequests {
  std::vector<ExactRun> children{};
  std::vector<Sql> sql{};
  std::optional<LastCompletion> completion{};
};

/// The engine uses the code `cancelled` for steps that it asked to stop. A step that returns `cancelled`
/// without being asked has failed, so its error gets another code. If a stop was requested meanwhile, the
/// engine reports that instead.
FlowDefinition::Returned fail_if_cancelled(FlowDefinition::Returned returned);

class FlowsCore : public std::enable_shared_from_this<FlowsCore> {
 public:
  FlowsCore(Runtime& runtime, FlowsOptions options);

  void add(std::shared_ptr<const FlowDefinition> definition);
  Result<void> validate() const;
  void add_machines(Machines& machines);
  Result<std::vector<RunsAtStep>> attach(Engine& engine);
  void detach() { engine_ = nullptr; }

  Result<const FlowDefinition*> find_flow(std::string_view name) const;
  /// Current name of a step at which a run may start. Error: `unknown_name`.
  static Result<std::string> find_step(const FlowDefinition& flow, std::string_view name);
  const std::map<std::string, std::shared_ptr<const FlowDefinition>, std::less<>>& flows() const {
    return flows_;
  }
  Time now() const { return runtime_.now(); }
  /// Error: `stopped` if no engine is attached.
  Result<Engine*> engine() const;
  /// For handlers, which may run before the engine is attached: waits for it.
  Result<Engine*> engine(const std::stop_token& stop);
  const FlowsOptions& options() const { return options_; }

  /// A validated start of a run.
  struct Prepared {
    std::string id;
    RunData data;
    std::string request_id{};
    std::string content{};  ///< text that a repeat of the request must match
  };
  Result<Prepared> prepare(const FlowDefinition& flow, std::string request, RunOptions options);
  void start(const std::string& flow, Prepared prepared, std::move_only_function<void(Result<Run>)> done);
  Result<Run> start_and_wait(const std::string& flow, Prepared prepared);
  Result<Run> get(std::string_view flow, std::string_view id) const;
  Run to_run(const Instance& instance) const;
  Run to_run(const Instance& instance, RunData data) const;
  Run to_started(const Instance& instance, const std::string& ulid) const;

  /// The reply for an outcome of a step, and the outcome for the metrics.
  struct StepReply {
    Result<Reply> reply;
    std::string_view outcome;
  };
  StepReply to_reply(const FlowDefinition& flow, std::size_t step, const RunData& data,
                     FlowDefinition::Returned returned, StepRequests requests);
  /// Ends a step whose last attempt has failed; `completion` is set if a worker reported the failure.
  FailureReply last_failure(const FlowDefinition& flow, std::size_t step,
                            std::optional<LastCompletion> completion);
  void count(std::string_view flow, std::string_view step, std::string_view outcome);
  std::vector<FlowCounts> counts() const;

 private:
  void initialize_counts();
  Result<void> check_after(const FlowDefinition& flow, std::string_view id, const RunRef& after) const;
  Machines::Work step_work(const std::shared_ptr<const FlowDefinition>& flow, std::size_t step);
  Machines::Work undo_work(const std::shared_ptr<const FlowDefinition>& flow, std::size_t step);
  Machines::Work finalizer_work(const std::shared_ptr<const FlowDefinition>& flow, std::size_t step);
  Machines::Work cleanup_work(std::string name, std::string next, FlowDefinition::Function function,
                              WorkOptions options);
  Machines::Work watch_work();
  Machines::Work plan_work(const std::shared_ptr<const FlowDefinition>& flow);
  Result<Reply> watch(const WorkContext& context);

  Runtime& runtime_;
  FlowsOptions options_;
  std::map<std::string, std::shared_ptr<const FlowDefinition>, std::less<>> flows_;
  std::vector<Error> problems_;
  std::atomic<Engine*> engine_ = nullptr;
  std::mutex attach_mutex_;
  bool attached_ = false;
  std::vector<std::shared_ptr<Gate>> waiting_for_attach_;  // of handlers that run before `attach`
  std::set<std::string, std::less<>> pools_;
  std::mutex ids_mutex_;
  UlidSource ids_;
  mutable std::mutex counts_mutex_;
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::uint64_t, std::less<>>,
           std::less<>>
      counts_;
};

}  // namespace pawl
