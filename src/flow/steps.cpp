// SPDX-License-Identifier: Apache-2.0
// Handlers of the steps: they run the function of a step and turn its outcome into the event that determines
// what comes next. They run on worker threads and use stored data only.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "flow/core.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/names.hpp"

namespace pawl {
namespace {

using namespace flow_machine;

std::string undo_name(std::string_view step) { return fmt::format("undo {}", step); }

std::optional<std::size_t> first_finalizer(const FlowDefinition& flow) {
  const auto found = std::ranges::find_if(flow.steps, [](const auto& step) { return step.finalizer; });
  if (found == flow.steps.end()) return std::nullopt;
  return static_cast<std::size_t>(found - flow.steps.begin());
}

/// The work that follows when a step ends the run: planning the cleanup; empty if there is nothing to clean
/// up.
std::string cleanup_plan(const FlowDefinition& flow) {
  const bool cleans_up =
      std::ranges::any_of(flow.steps, [](const auto& step) { return step.finalizer || step.undo; });
  return cleans_up ? std::string(kPlan) : std::string();
}

/// How often a step has rewound the run.
std::uint32_t rewinds_of(const RunData& data, const std::string& step) {
  if (!data.control) return 0;
  const auto found = data.control->rewinds.find(step);
  return found == data.control->rewinds.end() ? 0 : found->second;
}

/// The first cleanup work below a step; empty: none.
std::string cleanup_below(const FlowDefinition& flow, std::size_t step) {
  while (step-- > 0) {
    if (flow.steps[step].undo) return undo_name(flow.steps[step].name);
  }
  const auto finalizer = first_finalizer(flow);
  return finalizer ? flow.steps[*finalizer].name : std::string();
}

std::string next_finalizer(const FlowDefinition& flow, std::size_t step) {
  return step + 1 < flow.steps.size() ? flow.steps[step + 1].name : std::string();
}

/// The first cleanup work of a run that is about to end. Every step that may have had effects is undone:
/// those before the current one, the current one if it has started, and those that once rewound the run.
std::string first_cleanup(const FlowDefinition& flow, const RunData& data, bool begun) {
  const auto ending = data.control ? data.control->ending : std::nullopt;
  if (ending == RunState::done || ending == RunState::handed_off) return cleanup_below(flow, 0);
  std::size_t above = flow.find(data.step).value_or(0) + (begun ? 1 : 0);
  for (const auto& [name, count] : data.control->rewinds) {
    if (const auto step = flow.find(name)) above = std::max(above, *step + 1);
  }
  return cleanup_below(flow, above);
}

/// The context that a step's function gets.
class RunningStep final : public Step {
 public:
  RunningStep(FlowsCore& core, const WorkContext& context, const RunData& data, const std::string& name)
      : core_(core),
        context_(context),
        flow_(context.machine),
        id_(context.key),
        run_ulid_(data.ulid),
        name_(name),
        children_before_(data.family ? data.family->children.size() : 0) {}

  const std::string& flow() const override { return flow_; }
  const std::string& id() const override { return id_; }
  const std::string& run_ulid() const override { return run_ulid_; }
  const std::string& name() const override { return name_; }
  std::uint32_t attempt() const override { return context_.attempt; }
  std::stop_token stop() const override { return context_.stop; }
  Time now() const override { return core_.now(); }
  std::string request_id() const override { return context_.request_id(); }

  void progress(double fraction, std::string_view text) override {
    const auto engine = core_.engine(context_.stop);
    if (engine) store_progress(**engine, flow_, id_, {run_ulid_, name_, fraction, text});
  }

  Result<Run> start_child(std::string_view flow, const std::string& request, RunOptions options) override {
    PAWL_CHECK(core_.engine(context_.stop));
    if (options.id.empty()) {
      return fail(Code::invalid_argument,
                  "a child needs an id of its own, so that a repeat of the step finds it again");
    }
    if (children_before_ + requests_.children.size() >= core_.options().children) {
      return fail(Code::too_large, fmt::format("a run has at most {} children", core_.options().children));
    }
    options.parent = RunRef{flow_, id_};
    PAWL_TRY(const auto* definition, core_.find_flow(flow));
    PAWL_TRY(auto prepared, core_.prepare(*definition, request, std::move(options)));
    // A repeat of the step finds the child even if it has ended and whatever the other options are.
    const auto starting =
        fmt::format("{} starts {} {}", context_.request_id(), definition->name, prepared.id);
    prepared.request_id = "child/" + InstanceId{digest16(starting)}.to_string();
    prepared.content.clear();
    auto started = core_.start_and_wait(definition->name, std::move(prepared));
    if (started) requests_.children.push_back({started->flow, started->id, started->ulid});
    return started;
  }
  Result<Run> get(std::string_view flow, std::string_view id) override {
    PAWL_CHECK(core_.engine(context_.stop));
    return core_.get(flow, id);
  }

  void sql(Sql statement) override { requests_.sql.push_back(std::move(statement)); }
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement) override {
    PAWL_TRY(const auto* engine, core_.engine(context_.stop));
    return engine->query(statement, context_.stop);
  }

  StepRequests take_requests() { return std::move(requests_); }

 private:
  FlowsCore& core_;
  const WorkContext& context_;
  std::string flow_;
  std::string id_;
  std::string run_ulid_;
  const std::string& name_;
  std::size_t children_before_;
  StepRequests requests_;
};

/// Reply of a cleanup; an error does not change how the run ends.
Reply cleaned(const std::string& step, std::string next, std::optional<std::string> error) {
  return reply(CleanedUp{step, std::move(next), std::move(error)});
}

/// Runs an undo or a finalizer.
Result<Reply> run_cleanup(FlowsCore& core, const WorkContext& context,
                          const FlowDefinition::Function& function, std::string next) {
  PAWL_TRY(const auto data, decode<RunData>(context.data));
  const std::string name(context.work);
  RunningStep running(core, context, data, name);
  const auto returned = function(running, data);
  if (returned.outcome.error()) return fail(*returned.outcome.error());
  const bool failed = returned.outcome.kind() != Outcome::Kind::done;
  core.count(context.machine, name, failed ? "failed" : "done");
  auto answer =
      cleaned(name, std::move(next),
              failed ? std::optional(fmt::format("{}: {}", name, returned.outcome.reason())) : std::nullopt);
  answer.sql = running.take_requests().sql;
  return answer;
}

}  // namespace

void store_progress(Engine& engine, std::string_view flow, std::string_view id, const Progress& progress) {
  JsonWriter out;
  out.begin_object().key("run_ulid").string(progress.run_ulid).key("step").string(progress.step);
  out.key("fraction")
      .number(std::isfinite(progress.fraction) ? std::clamp(progress.fraction, 0.0, 1.0) : 0.0);
  out.key("text").string(progress.text.substr(0, 200)).end_object();
  // Progress is optional: if it cannot be stored, the step continues.
  if (auto text = out.take()) (void)engine.put_ephemeral(flow, id, "progress", *std::move(text));
}

Machines::Work FlowsCore::step_work(const std::shared_ptr<const FlowDefinition>& flow, std::size_t step) {
  const auto& defined = flow->steps[step];
  Machines::Work work;
  work.options = {.retry = defined.options.retry,
                  .timeout = defined.options.timeout,
                  .pool = defined.options.pool,
                  .lease = defined.lease};
  work.options.failed = last_failure(*flow, step, std::nullopt);
  if (!defined.run) return work;
  work.run = [this, flow, step](const WorkContext& context, std::string_view) -> Result<Reply> {
    const auto& current = flow->steps[step];
    std::optional<RunData> decoded;
    if (context.value == nullptr) {
      PAWL_TRY(decoded, decode<RunData>(context.data));
    }
    const auto& data = decoded ? *decoded : *static_cast<const RunData*>(context.value);
    RunningStep running(*this, context, data, current.name);
    auto returned = current.run(running, data);
    if (!context.stop.stop_requested()) returned = fail_if_cancelled(std::move(returned));
    auto answer = to_reply(*flow, step, data, std::move(returned), running.take_requests());
    count(flow->name, current.name, answer.outcome);
    return std::move(answer.reply);
  };
  return work;
}

FailureReply FlowsCore::last_failure(const FlowDefinition& flow, std::size_t step,
                                     std::optional<LastCompletion> completion) {
  return [this, &flow, step, completion = std::move(completion)](const Error& error) {
    const auto& name = flow.steps[step].name;
    if (error.code() == Code::cancelled) return reply(StepStopped{name, error.message(), completion});
    count(flow.name, name, "exhausted");
    return reply(StepEnded{.step = name,
                           .ending = RunState::failed,
                           .next = cleanup_plan(flow),
                           .reason = fmt::format("retries exhausted: {}", error.to_string()),
                           .kind = FailureKind::system,
                           .completion = completion});
  };
}

FlowDefinition::Returned fail_if_cancelled(FlowDefinition::Returned returned) {
  const auto& error = returned.outcome.error();
  if (!error || error->code() != Code::cancelled) return returned;
  return {Error(Code::work_threw,
                fmt::format("the step was not asked to stop, but returned {}", error->to_string()))};
}

FlowsCore::StepReply FlowsCore::to_reply(const FlowDefinition& flow, std::size_t step, const RunData& data,
                                         FlowDefinition::Returned returned, StepRequests requests) {
  const auto& name = flow.steps[step].name;
  auto& [outcome, response] = returned;
  if (outcome.error() && requests.completion) {
    const auto& error = *outcome.error();
    return {
        failed_reply({error, last_failure(flow, step, requests.completion)},
                     StepFailed{name, requests.completion->attempt, error.to_string(), requests.completion}),
        "error"};
  }
  if (outcome.error()) return {fail(*outcome.error()), "error"};
  std::optional<Json> kept;
  if (response && *response != data.response.text) kept = Json{*std::move(response)};
  const auto end = [&](RunState ending, std::string reason, std::optional<FailureKind> kind) -> StepReply {
    auto answer = reply(StepEnded{name, ending, cleanup_plan(flow), std::move(kept), std::move(reason), kind,
                                  requests.completion});
    answer.sql = std::move(requests.sql);
    return {std::move(answer), enum_name(ending)};
  };
  // The outcome is not the one that the step returned, so its statements do not apply.
  const auto fail_instead = [&](std::string reason, FailureKind kind) {
    requests.sql.clear();
    return end(RunState::failed, std::move(reason), kind);
  };
  if (kept && kept->text.size() > options_.response_bytes) {
    const auto size = std::exchange(kept, std::nullopt)->text.size();
    return fail_instead(
        fmt::format("the response has {} bytes; at most {} are kept", size, options_.response_bytes),
        FailureKind::user);
  }
  switch (outcome.kind()) {
    case Outcome::Kind::handoff:
      return end(RunState::handed_off, outcome.reason(), std::nullopt);
    case Outcome::Kind::abort:
      return end(RunState::aborted, outcome.reason(), std::nullopt);
    case Outcome::Kind::unrecoverable:
      return end(RunState::failed, outcome.reason(), outcome.failure_kind());
    case Outcome::Kind::rewind: {
      const auto target = flow.find(outcome.step());
      const auto times = rewinds_of(data, name);
      if (!target || *target > step) {
        return fail_instead(
            fmt::format("step \"{}\" goes back to \"{}\", which is no step before it", name, outcome.step()),
            FailureKind::user);
      }
      if (times >= flow.steps[step].options.rewinds) {
        return fail_instead(fmt::format("step \"{}\" has sent the run back {} times already: {}", name, times,
                                        outcome.reason()),
                            FailureKind::system);
      }
      auto answer = reply(StepRewound{name, flow.steps[*target].name, std::move(kept), outcome.reason(),
                                      requests.completion});
      answer.sql = std::move(requests.sql);
      return {std::move(answer), "rewound"};
    }
    case Outcome::Kind::done:
    case Outcome::Kind::join:
    case Outcome::Kind::again:
      break;
  }
  const bool last = step + 1 == flow.steps.size();
  const bool closes = !last && flow.steps[step + 1].finalizer;
  if (outcome.kind() != Outcome::Kind::join) requests.children.clear();
  auto answer = reply(StepDone{.step = name,
                               .next = last ? std::string() : flow.steps[step + 1].name,
                               .response = std::move(kept),
                               .children = std::move(requests.children),
                               .closes = closes,
                               .completion = std::move(requests.completion)});
  answer.sql = std::move(requests.sql);
  return {std::move(answer), "done"};
}

Machines::Work FlowsCore::undo_work(const std::shared_ptr<const FlowDefinition>& flow, std::size_t step) {
  const auto& defined = flow->steps[step];
  return cleanup_work(undo_name(defined.name), cleanup_below(*flow, step), defined.undo,
                      {.retry = defined.options.retry, .timeout = defined.options.timeout});
}

Machines::Work FlowsCore::finalizer_work(const std::shared_ptr<const FlowDefinition>& flow,
                                         std::size_t step) {
  const auto& defined = flow->steps[step];
  return cleanup_work(
      defined.name, next_finalizer(*flow, step), defined.run,
      {.retry = defined.options.retry, .timeout = defined.options.timeout, .pool = defined.options.pool});
}

Machines::Work FlowsCore::cleanup_work(std::string name, std::string next, FlowDefinition::Function function,
                                       WorkOptions options) {
  options.failed = [name = std::move(name), next](const Error& error) {
    return cleaned(name, next, fmt::format("{}: {}", name, error.to_string()));
  };
  return {.run = [this, next = std::move(next), function = std::move(function)](
                     const WorkContext& context,
                     std::string_view) { return run_cleanup(*this, context, function, next); },
          .options = std::move(options)};
}

Machines::Work FlowsCore::plan_work(const std::shared_ptr<const FlowDefinition>& flow) {
  return {.run = [flow](const WorkContext& context, std::string_view payload) -> Result<Reply> {
            PAWL_TRY(const auto data, decode<RunData>(context.data));
            PAWL_TRY(const auto plan, decode<Plan>(payload));
            return cleaned(std::string(kPlan), first_cleanup(*flow, data, plan.begun), std::nullopt);
          },
          .options = {}};
}

Machines::Work FlowsCore::watch_work() {
  return {.run = [this](const WorkContext& context, std::string_view) { return watch(context); },
          .options = {.retry = {.retries = RetryPolicy::kUnlimited,
                                .first = std::chrono::milliseconds(100),
                                .cap = std::chrono::seconds(5)}}};
}

/// Reads the upstream run and registers for its end.
Result<Reply> FlowsCore::watch(const WorkContext& context) {
  PAWL_TRY(const auto data, decode<RunData>(context.data));
  if (!data.plan || !data.plan->after) return no_reply();
  const auto& after = data.plan->after->run;
  PAWL_TRY(auto* engine, engine(context.stop));
  const auto ended = [&]() -> Result<std::optional<Reply>> {
    const auto upstream = get(after.flow, after.id);
    if (!upstream && upstream.error().code() != Code::unknown_instance) return fail(upstream.error());
    // Removed by retention: how it ended is unknown.
    if (!upstream) return reply(UpstreamEnded{after, RunState::cancelled, {}, data.ulid});
    if (!upstream->finished) return std::nullopt;
    return reply(UpstreamEnded{after, upstream->state, Json{upstream->response}, data.ulid});
  };
  PAWL_TRY(auto before, ended());
  if (before) return *std::move(before);
  const Watch watch{{std::string(context.machine), std::string(context.key), data.ulid}};
  auto registered = engine->commit(Transaction{}.send<run>(after.id, watch, {.machine = after.flow}));
  if (registered) return no_reply();
  // It may have ended in the meantime.
  PAWL_TRY(auto since, ended());
  if (since) return *std::move(since);
  return fail(std::move(registered).error());
}

/// Starts every counter at zero, so that a monitoring system sees the first end as an increase.
void FlowsCore::initialize_counts() {
  const std::lock_guard lock(counts_mutex_);
  for (const auto& [name, flow] : flows_) {
    for (const auto& step : flow->steps) {
      auto& ends = counts_[{name, step.name}];
      for (const auto* outcome : {"done", "failed"}) ends.try_emplace(outcome, 0);
      if (step.undo) {
        for (const auto* outcome : {"done", "failed"})
          counts_[{name, undo_name(step.name)}].try_emplace(outcome, 0);
      }
      if (step.finalizer) continue;
      for (const auto* outcome : {"handed_off", "aborted", "rewound", "error", "exhausted"})
        ends.try_emplace(outcome, 0);
    }
  }
}

void FlowsCore::add_machines(Machines& machines) {
  for (const auto& [name, flow] : flows_) {
    auto definition = define<run>();
    definition.name = name;
    definition.former_names = flow->former_names;
    definition.readers = flow->readers;
    definition.steered_by = fmt::format("/v1/flows/{}/runs", name);
    machines.add(std::move(definition));
    machines.add_work(name, std::string(kWatch), watch_work());
    machines.add_work(name, std::string(kPlan), plan_work(flow));
    for (std::size_t step = 0; step < flow->steps.size(); ++step) {
      const auto& defined = flow->steps[step];
      machines.add_work(name, defined.name,
                        defined.finalizer ? finalizer_work(flow, step) : step_work(flow, step));
      if (defined.undo) machines.add_work(name, undo_name(defined.name), undo_work(flow, step));
    }
    for (const auto& former : flow->former_steps) {
      machines.add_work(name, former.name, step_work(flow, *flow->find(former.at)));
    }
  }
}

}  // namespace pawl
