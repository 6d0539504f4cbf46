// SPDX-License-Identifier: Apache-2.0
#include "pawl/flows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "flow/core.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/names.hpp"

namespace pawl {

namespace machine_events = flow_machine;

Flows::Flows(Runtime& runtime, FlowsOptions options)
    : core_(std::make_shared<FlowsCore>(runtime, std::move(options))) {}
Flows::~Flows() = default;

Flows& Flows::add(std::shared_ptr<const FlowDefinition> definition) {
  core_->add(std::move(definition));
  return *this;
}
void Flows::add_machines(Machines& machines) { core_->add_machines(machines); }
Result<void> Flows::validate() const { return core_->validate(); }
Result<std::vector<RunsAtStep>> Flows::attach(Engine& engine) { return core_->attach(engine); }
void Flows::detach() { core_->detach(); }

std::vector<const FlowDefinition*> Flows::flows() const {
  std::vector<const FlowDefinition*> all;
  for (const auto& [name, flow] : core_->flows()) all.push_back(flow.get());
  return all;
}

Result<Run> Flows::start(std::string_view flow, std::string request, RunOptions options) {
  PAWL_TRY(const auto* definition, core_->find_flow(flow));
  PAWL_TRY(auto prepared, core_->prepare(*definition, std::move(request), std::move(options)));
  return core_->start_and_wait(definition->name, std::move(prepared));
}

void Flows::start(std::string_view flow, std::string request, RunOptions options,
                  std::move_only_function<void(Result<Run>)> done) {
  const auto definition = core_->find_flow(flow);
  if (!definition) return done(fail(definition.error()));
  auto prepared = core_->prepare(**definition, std::move(request), std::move(options));
  if (!prepared) return done(fail(std::move(prepared).error()));
  core_->start((*definition)->name, *std::move(prepared), std::move(done));
}

Result<Run> Flows::get(std::string_view flow, std::string_view id) const { return core_->get(flow, id); }

/// Runs are listed in order of creation, so the time in the ULID says where to start.
Result<Run> Flows::find(std::string_view ulid) const {
  PAWL_TRY(const auto id, Ulid::parse(ulid));
  PAWL_TRY(const auto* engine, core_->engine());
  const auto text = id.to_string();
  for (const auto& [name, flow] : core_->flows()) {
    // The commit comes after the ULID, even if the clock was set back in between.
    ListQuery query{
        .machine = name, .created_after = id.time() - std::chrono::milliseconds(1), .limit = 1000};
    do {
      PAWL_TRY(const auto page, engine->list(query));
      for (const auto& instance : page.instances) {
        if (instance.data.find(text) == std::string::npos) continue;
        auto run = core_->to_run(instance);
        if (run.ulid == text) return run;
      }
      query.cursor = page.next;
    } while (!query.cursor.empty());
  }
  return fail(Code::unknown_instance, fmt::format("there is no run {}", text));
}

Result<RunPage> Flows::list(const RunQuery& query) const {
  PAWL_TRY(const auto* engine, core_->engine());
  ListQuery wanted{.state = query.state,
                   .queue = query.queue,
                   .finished = query.finished,
                   .newest_first = query.newest_first,
                   .cursor = query.cursor,
                   .limit = std::clamp<std::size_t>(query.limit, 1, 1000)};
  if (query.flow.empty()) {
    for (const auto& [name, flow] : core_->flows()) wanted.machines.push_back(name);
    if (wanted.machines.empty()) return RunPage{};
  } else {
    PAWL_TRY(const auto* flow, core_->find_flow(query.flow));
    wanted.machine = flow->name;
  }
  PAWL_TRY(const auto found, engine->list(wanted));
  RunPage page{.runs = {}, .next = found.next};
  for (const auto& instance : found.instances) {
    auto& run = page.runs.emplace_back(core_->to_run(instance));
    if (run.finished) continue;
    if (const auto values = engine->ephemerals(instance.machine, instance.key)) add_progress(run, *values);
  }
  return page;
}

Result<Run> Flows::wait(std::string_view flow, std::string_view id, std::optional<Duration> timeout) const {
  PAWL_TRY(const auto* definition, core_->find_flow(flow));
  PAWL_TRY(const auto* engine, core_->engine());
  PAWL_TRY(const auto instance, engine->wait_for(definition->name, id, {}, timeout));
  return core_->to_run(instance);
}

void Flows::wait(std::string_view flow, std::string_view id, std::optional<Duration> timeout,
                 std::move_only_function<void(Result<Run>)> done) const {
  const auto definition = core_->find_flow(flow);
  if (!definition) return done(fail(definition.error()));
  const auto engine = core_->engine();
  if (!engine) return done(fail(engine.error()));
  (*engine)->wait_for((*definition)->name, id, {}, timeout,
                      [core = core_, done = std::move(done)](Result<Instance> instance) mutable {
                        if (!instance) return done(fail(std::move(instance).error()));
                        done(core->to_run(*instance));
                      });
}

Result<RunTimeline> Flows::timeline(std::string_view flow, std::string_view id) const {
  constexpr std::size_t kPage = 1000;
  PAWL_TRY(auto run, core_->get(flow, id));
  PAWL_TRY(const auto* engine, core_->engine());
  std::vector<LogEvent> events;
  bool truncated = false;
  for (std::int64_t before = 0; events.size() < 10 * kPage;) {
    PAWL_TRY(auto page, engine->history(run.flow, id, before, kPage));
    std::ranges::move(page.events, std::back_inserter(events));
    truncated = page.truncated;
    before = page.next;
    const bool complete = !events.empty() && events.back().generation < run.generation;
    if (before == 0 || complete) break;
  }
  std::erase_if(events, [&](const LogEvent& event) { return event.generation != run.generation; });
  std::ranges::reverse(events);
  RunTimeline timeline{.run = std::move(run), .spans = {}, .truncated = truncated};
  timeline.spans = to_spans(events, timeline.run);
  return timeline;
}

namespace {

/// A requested change of a run.
struct Change {
  std::string_view verb;
  std::string_view flow;
  std::string_view id;
  std::string_view argument{};
  std::string request_id{};

  /// Text that a repeat must match; independent of the run's state.
  std::string content(const FlowDefinition& definition) const {
    JsonWriter out;
    out.begin_array().string(verb).string(definition.name).string(id).string(argument).end_array();
    return out.take().value_or("");
  }
};

/// Sends an event to a run and returns the run after it.
template <class E>
Result<Run> send_change(const FlowsCore& core, const Change& change, E event) {
  PAWL_TRY(const auto* definition, core.find_flow(change.flow));
  PAWL_TRY(auto* engine, core.engine());
  auto transaction =
      Transaction{}
          .send<machine_events::run>(std::string(change.id), std::move(event), {.machine = definition->name})
          .request_id(change.request_id, change.content(*definition));
  PAWL_TRY(const auto changed, engine->commit(std::move(transaction)));
  return core.to_run(changed.front());
}

}  // namespace

Result<Run> Flows::cancel(std::string_view flow, std::string_view id, std::string reason,
                          std::string request_id) {
  const Change change{"cancel", flow, id, reason, std::move(request_id)};
  return send_change(*core_, change, machine_events::Cancel{reason});
}
Result<Run> Flows::pause(std::string_view flow, std::string_view id, std::string request_id) {
  return send_change(*core_, {.verb = "pause", .flow = flow, .id = id, .request_id = std::move(request_id)},
                     machine_events::Pause{});
}
Result<Run> Flows::resume(std::string_view flow, std::string_view id, std::string request_id) {
  return send_change(*core_, {.verb = "resume", .flow = flow, .id = id, .request_id = std::move(request_id)},
                     machine_events::Resume{});
}

Result<Run> Flows::retry(std::string_view flow, std::string_view id, std::string step,
                         std::string request_id) {
  const Change change{"retry", flow, id, step, std::move(request_id)};
  PAWL_TRY(const auto* definition, core_->find_flow(flow));
  PAWL_TRY(auto current, core_->get(flow, id));
  PAWL_TRY(const auto name, FlowsCore::find_step(*definition, step.empty() ? current.step : step));
  if (!current.finished) return send_change(*core_, change, machine_events::Retry{name});
  RunOptions options{.id = std::string(id), .from = name};
  if (current.plan && current.plan->queue) options.queue = *current.plan->queue;
  if (current.plan) options.priority = current.plan->priority;
  if (current.family) options.parent = current.family->parent;
  PAWL_TRY(auto prepared, core_->prepare(*definition, std::move(current.request), std::move(options)));
  prepared.request_id = change.request_id;
  prepared.content = change.content(*definition);
  prepared.data.response = Json{std::move(current.response)};
  // The response of the upstream run stays available.
  if (current.plan && current.plan->after && current.plan->after->response) {
    if (!prepared.data.plan) prepared.data.plan.emplace();
    prepared.data.plan->after = std::move(current.plan->after);
  }
  return core_->start_and_wait(definition->name, std::move(prepared));
}

void Flows::claim(std::string_view flow, std::vector<std::string> steps, Duration wait,
                  std::move_only_function<void(Result<std::optional<ClaimedStep>>)> done) {
  const auto definition = core_->find_flow(flow);
  if (!definition) return done(fail(definition.error()));
  const auto engine = core_->engine();
  if (!engine) return done(fail(engine.error()));
  if (steps.empty()) {
    for (const auto& step : (*definition)->steps) {
      if (step.lease) steps.push_back(step.name);
    }
  }
  (*engine)->claim((*definition)->name, std::move(steps), wait,
                   [done = std::move(done)](Result<std::optional<ClaimedWork>> claimed) mutable {
                     if (!claimed) return done(fail(std::move(claimed).error()));
                     if (!*claimed) return done(std::nullopt);
                     auto& work = **claimed;
                     auto data = decode<RunData>(work.data);
                     if (!data) return done(fail(std::move(data).error()));
                     done(ClaimedStep{.lease = work.lease,
                                      .run_ulid = std::move(data->ulid),
                                      .step = work.work,
                                      .request = std::move(data->request.text),
                                      .response = std::move(data->response.text),
                                      .request_id = std::move(work.request_id),
                                      .duration = work.duration});
                   });
}

void Flows::heartbeat(const Lease& lease, std::optional<double> progress, std::string_view text,
                      std::move_only_function<void(Result<LeaseStatus>)> done) {
  const auto engine = core_->engine();
  if (!engine) return done(fail(engine.error()));
  if (progress) {
    if (const auto run = core_->get(lease.machine, lease.key))
      store_progress(**engine, run->flow, run->id, {run->ulid, run->step, *progress, text});
  }
  (*engine)->heartbeat(lease, std::move(done));
}

namespace {

/// Identifies a completion, to recognize a repeat.
LastCompletion to_completion(const Lease& lease, const RemoteOutcome& result) {
  const auto& outcome = result.outcome;
  JsonWriter out;
  out.begin_array().integer(static_cast<std::int64_t>(outcome.kind()));
  out.string(outcome.error() ? outcome.error()->to_string() : outcome.reason()).string(outcome.step());
  out.string(enum_name(outcome.failure_kind())).string(result.response.value_or("")).end_array();
  const auto content = digest16(out.take().value_or(""));
  return {.number = lease.number, .attempt = lease.attempt, .content = InstanceId{content}.to_string()};
}

}  // namespace

void Flows::complete(const Lease& lease, RemoteOutcome outcome,
                     std::move_only_function<void(Result<void>)> done) {
  std::string name;
  bool repeated = false;
  auto answer = [&]() -> Result<FlowsCore::StepReply> {
    PAWL_TRY(const auto* flow, core_->find_flow(lease.machine));
    PAWL_TRY(const auto* engine, core_->engine());
    PAWL_TRY(const auto instance, engine->read(flow->name, lease.key));
    PAWL_TRY(const auto data, decode<RunData>(instance.data));
    auto completion = to_completion(lease, outcome);
    repeated = data.completion == completion;
    if (repeated) return fail(Code::lease_lost, "it was completed before");
    const auto step = flow->find(data.step);
    if (!step || !flow->steps[*step].lease)
      return fail(Code::lease_lost, fmt::format("{} \"{}\" is at no step that can be claimed", flow->name,
                                                lease.key.substr(0, 128)));
    name = flow->steps[*step].name;
    if (outcome.response) {
      if (auto fits = flow->check_response(*outcome.response); !fits)
        return fail(std::move(fits).error().while_("the response"));
    }
    return core_->to_reply(*flow, *step, data,
                           fail_if_cancelled({std::move(outcome.outcome), std::move(outcome.response)}),
                           {.completion = std::move(completion)});
  }();
  if (repeated) return done({});
  if (!answer) return done(fail(answer.error()));
  // Count only accepted completions: the lease may have ended.
  (*core_->engine())
      ->complete(lease, std::move(answer->reply),
                 [core = core_, flow = lease.machine, name = std::move(name), as = answer->outcome,
                  done = std::move(done)](Result<void> accepted) mutable {
                   if (accepted) core->count(flow, name, as);
                   done(std::move(accepted));
                 });
}

std::vector<FlowCounts> Flows::counts() const { return core_->counts(); }

}  // namespace pawl
