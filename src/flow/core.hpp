// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The inside of `Flows`: the definitions, the handlers of their steps, the engine once it is there.

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

/// How far a step is.
struct Progress {
  std::string_view run_ulid;
  std::string_view step;
  double fraction = 0;
  std::string_view text;
};
void note_progress(Engine& engine, std::string_view flow, std::string_view id, const Progress& progress);
void add_progress(Run& run, const std::map<std::string, std::string>& ephemerals);

/// What took time in a run, made of its entries, oldest first.
std::vector<RunSpan> to_spans(const std::vector<LogEvent>& events, const Run& run);

/// What a step has asked for besides its outcome, and whose completion it was where somebody else did it.
struct StepAsked {
  std::vector<ExactRun> children{};
  std::vector<Sql> sql{};
  std::optional<LastCompletion> completion{};
};

/// `cancelled` is how the engine tells that a step has stopped because it was asked to. A step that returns
/// it of its own accord has failed like with any other error. Where a stop was asked for meanwhile, the
/// engine says so in its place.
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
  /// A step at which a run may begin, by its present name. Error: `unknown_name`.
  static Result<std::string> find_step(const FlowDefinition& flow, std::string_view name);
  const std::map<std::string, std::shared_ptr<const FlowDefinition>, std::less<>>& flows() const {
    return flows_;
  }
  Time now() const { return runtime_.now(); }
  /// Error: `stopped`, where there is none.
  Result<Engine*> engine() const;
  /// The same for a handler, which may run before the engine was attached: waits for that.
  Result<Engine*> engine(const std::stop_token& stop);
  const FlowsOptions& options() const { return options_; }

  /// What is begun, once everything was checked.
  struct Prepared {
    std::string id;
    RunData data;
    std::string request_id{};
    std::string content{};  ///< what a repeat of the request is equal in
  };
  Result<Prepared> prepare(const FlowDefinition& flow, std::string request, RunOptions options);
  void begin(const std::string& flow, Prepared prepared, std::move_only_function<void(Result<Run>)> done);
  Result<Run> begin_and_wait(const std::string& flow, Prepared prepared);
  Result<Run> get(std::string_view flow, std::string_view id) const;
  Run to_run(const Instance& instance) const;
  Run to_run(const Instance& instance, RunData data) const;
  Run to_started(const Instance& instance, const std::string& begun) const;

  /// The event that an outcome of a step comes to, and what it is counted as.
  struct Settled {
    Result<Reply> reply;
    std::string_view outcome;
  };
  Settled settle(const FlowDefinition& flow, std::size_t step, const RunData& data,
                 FlowDefinition::Returned returned, StepAsked asked);
  /// What ends a step whose last attempt has failed; `completion` is set if a worker reported the failure.
  FailureReply last_failure(const FlowDefinition& flow, std::size_t step,
                            std::optional<LastCompletion> completion);
  void count(std::string_view flow, std::string_view step, std::string_view outcome);
  std::vector<FlowCounts> counts() const;

 private:
  void count_from_zero();
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
  std::vector<std::shared_ptr<Gate>> waiting_for_attach_;  // handlers that run before there is an engine
  std::set<std::string, std::less<>> pools_;
  std::mutex ids_mutex_;
  UlidSource ids_;
  mutable std::mutex counts_mutex_;
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::uint64_t, std::less<>>,
           std::less<>>
      counts_;
};

}  // namespace pawl
