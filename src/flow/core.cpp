// SPDX-License-Identifier: Apache-2.0
#include "flow/core.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pawl/instance_id.hpp"
#include "pawl/names.hpp"

namespace pawl {

using flow_machine::Begin;

namespace {

std::string id_of_request(std::string_view request_id) {
  return InstanceId{digest16(fmt::format("run {}", request_id))}.to_string();
}

/// Everything that a start request contains.
std::string content_of(const FlowDefinition& flow, std::string_view request, const RunOptions& options) {
  JsonWriter out;
  out.begin_array().string(flow.name).string(request).string(options.id).string(options.queue);
  out.integer(std::int64_t{options.priority}).integer(options.delay ? options.delay->count() : -1);
  out.string(enum_name(options.on)).string(options.from);
  for (const auto* other : {&options.after, &options.parent})
    out.string(*other ? (*other)->flow : "").string(*other ? (*other)->id : "");
  return out.end_array().take().value_or("");
}

}  // namespace

FlowsCore::FlowsCore(Runtime& runtime, FlowsOptions options)
    : runtime_(runtime), options_(std::move(options)), ids_([&runtime] { return runtime.random(); }) {}

void FlowsCore::add(std::shared_ptr<const FlowDefinition> definition) {
  if (auto valid = definition->validate(); !valid) {
    problems_.push_back(std::move(valid).error());
    return;
  }
  const auto [entry, added] = flows_.emplace(definition->name, definition);
  if (!added)
    problems_.emplace_back(Code::duplicate_machine, fmt::format("two flows are called \"{}\"", entry->first));
}

Result<void> FlowsCore::validate() const {
  if (!problems_.empty()) return fail(problems_.front());
  return {};
}

Result<const FlowDefinition*> FlowsCore::find_flow(std::string_view name) const {
  const auto found = flows_.find(name);
  if (found != flows_.end()) return found->second.get();
  std::vector<std::string_view> known;
  for (const auto& [flow, definition] : flows_) {
    if (std::ranges::find(definition->former_names, name) != definition->former_names.end())
      return definition.get();
    known.push_back(flow);
  }
  return fail(Code::unknown_name,
              fmt::format("no flow \"{}\"; known: {}", name.substr(0, 64), fmt::join(known, ", ")),
              {{"flow", std::string(name.substr(0, 64))}});
}

Result<std::string> FlowsCore::find_step(const FlowDefinition& flow, std::string_view name) {
  const auto step = flow.find(name);
  if (step && !flow.steps[*step].finalizer) return flow.steps[*step].name;
  return fail(Code::unknown_name,
              fmt::format("flow \"{}\" has no step \"{}\"", flow.name, name.substr(0, 64)));
}

Result<Engine*> FlowsCore::engine() const {
  auto* engine = engine_.load();
  if (engine != nullptr) return engine;
  return fail(Code::stopped, "the flows are not attached to an engine");
}

Result<Engine*> FlowsCore::engine(const std::stop_token& stop) {
  const auto gate = std::make_shared<Gate>();
  {
    const std::lock_guard lock(attach_mutex_);
    if (attached_) return engine();
    waiting_for_attach_.push_back(gate);
  }
  // One gate per handler: stopping one handler does not release the others.
  const std::stop_callback stopped(stop, [gate] { gate->open(); });
  runtime_.wait(*gate);
  return engine();
}

/// Finds runs that older releases left. Runs at unknown steps wait for a release that knows the step.
Result<std::vector<RunsAtStep>> FlowsCore::attach(Engine& engine) {
  PAWL_CHECK(validate());
  for (const auto& pool : engine.pools()) pools_.insert(pool.name);
  initialize_counts();
  engine_ = &engine;
  std::map<std::pair<std::string, std::string>, std::size_t> found;
  for (const auto& [name, flow] : flows_) {
    ListQuery query{.machine = name, .finished = false, .limit = 1000};
    do {
      PAWL_TRY(const auto page, engine.list(query));
      for (const auto& instance : page.instances) {
        PAWL_TRY(const auto data, decode<RunData>(instance.data));
        ++found[{name, data.step}];
      }
      query.cursor = page.next;
    } while (!query.cursor.empty());
  }
  std::vector<RunsAtStep> report;
  for (const auto& [at, runs] : found) {
    const bool known = flows_.find(at.first)->second->find(at.second).has_value();
    report.push_back({at.first, at.second, runs, known});
    if (!known) {
      options_.log.warn("runs are at a step that the flow does not have",
                        {{"flow", at.first}, {"step", at.second}, {"runs", runs}});
    }
  }
  std::vector<std::shared_ptr<Gate>> waiting;
  {
    const std::lock_guard lock(attach_mutex_);
    attached_ = true;
    waiting.swap(waiting_for_attach_);
  }
  for (const auto& gate : waiting) gate->open();
  return report;
}

/// Checks that a dependent run can start: its upstream run exists, and does not wait for it in turn.
Result<void> FlowsCore::check_after(const FlowDefinition& flow, std::string_view id,
                                    const RunRef& after) const {
  constexpr std::size_t kMaxLength = 1000;
  std::vector<std::string> chain{fmt::format("{} \"{}\"", flow.name, id)};
  RunRef next = after;
  for (std::size_t steps = 0; steps < kMaxLength; ++steps) {
    chain.push_back(fmt::format("{} \"{}\"", next.flow, next.id));
    if (next.flow == flow.name && next.id == id) {
      return fail(Code::invalid_argument,
                  fmt::format("the run would wait for itself: {}", fmt::join(chain, " after ")));
    }
    PAWL_TRY(const auto upstream, get(next.flow, next.id));
    if (upstream.finished || !upstream.plan || !upstream.plan->after || upstream.plan->after->ended)
      return {};
    next = upstream.plan->after->run;
  }
  return fail(Code::too_large, fmt::format("more than {} runs wait for each other", kMaxLength));
}

Result<FlowsCore::Prepared> FlowsCore::prepare(const FlowDefinition& flow, std::string request,
                                               RunOptions options) {
  if (auto checked = flow.check_request(request); !checked)
    return fail(std::move(checked).error().while_(fmt::format("the request of flow \"{}\"", flow.name)));
  // In the run's data it is nested one level deeper, and is not validated again.
  JsonWriter nested;
  PAWL_CHECK(nested.begin_object().field("request").embed(request).end_object().take());
  PAWL_TRY(auto step, find_step(flow, options.from.empty() ? flow.steps.front().name : options.from));
  if (!options.queue.empty() && !pools_.contains(options.queue)) {
    return fail(Code::unknown_pool, fmt::format("no queue \"{}\"; known: {}", options.queue.substr(0, 64),
                                                fmt::join(pools_, ", ")));
  }
  if (options.delay && *options.delay < Duration::zero())
    return fail(Code::invalid_argument, "the delay is negative");
  Prepared prepared;
  {
    const std::lock_guard lock(ids_mutex_);
    prepared.data.ulid = ids_.next(runtime_.now()).to_string();
  }
  if (!options.request_id.empty()) prepared.content = content_of(flow, request, options);
  prepared.id = !options.id.empty()          ? std::move(options.id)
                : options.request_id.empty() ? prepared.data.ulid
                                             : id_of_request(options.request_id);
  prepared.request_id = std::move(options.request_id);
  prepared.data.request = Json{std::move(request)};
  prepared.data.step = std::move(step);
  if (options.after) {
    PAWL_TRY(const auto* upstream, find_flow(options.after->flow));
    options.after->flow = upstream->name;
    PAWL_CHECK(check_after(flow, prepared.id, *options.after));
  }
  if (options.parent) {
    PAWL_TRY(const auto* parent, find_flow(options.parent->flow));
    prepared.data.family = RunFamily{.parent = RunRef{parent->name, std::move(options.parent->id)}};
  }
  if (options.delay || options.after || !options.queue.empty()) {
    RunPlan plan{.priority = options.priority};
    if (options.delay && *options.delay > Duration::zero()) plan.not_before = runtime_.now() + *options.delay;
    if (options.after) plan.after = Upstream{.run = *std::move(options.after), .on = options.on};
    if (!options.queue.empty()) plan.queue = std::move(options.queue);
    prepared.data.plan = std::move(plan);
  }
  return prepared;
}

/// The result of a start whose outcome may come from the log: if it is another run than `ulid`, the start was
/// a repeat. Returns that run as it is now, unless a later run has taken its id.
Run FlowsCore::to_started(const Instance& instance, const std::string& ulid) const {
  auto first = to_run(instance);
  if (first.ulid == ulid) return first;
  first.attached = true;
  auto current = get(first.flow, first.id);
  if (!current || current->ulid != first.ulid) return first;
  current->attached = true;
  return *std::move(current);
}

/// Starts the run, or finds the unfinished run of the same id.
void FlowsCore::start(const std::string& flow, Prepared prepared,
                      std::move_only_function<void(Result<Run>)> done) {
  const auto engine = this->engine();
  if (!engine) return done(fail(engine.error()));
  auto id = prepared.id;
  auto data = prepared.data;
  const bool tagged = !prepared.request_id.empty();
  auto transaction = Transaction{}
                         .begin<flow_machine::run>(std::move(prepared.id), std::move(prepared.data), Begin{},
                                                   {.machine = flow})
                         .request_id(std::move(prepared.request_id), std::move(prepared.content));
  (*engine)->submit(std::move(transaction),
                    [core = shared_from_this(), flow, id = std::move(id), data = std::move(data), tagged,
                     done = std::move(done)](auto outcome) mutable {
                      if (outcome && tagged) return done(core->to_started(outcome->front(), data.ulid));
                      if (outcome) return done(core->to_run(outcome->front(), std::move(data)));
                      if (outcome.error().code() != Code::duplicate_instance)
                        return done(fail(std::move(outcome).error()));
                      auto found = core->get(flow, id);
                      if (found) found->attached = true;
                      done(std::move(found));
                    });
}

Result<Run> FlowsCore::start_and_wait(const std::string& flow, Prepared prepared) {
  struct Slot {
    Gate gate;
    Result<Run> outcome = fail(Code::stopped, "the engine stopped before the outcome was known");
  };
  auto slot = std::make_shared<Slot>();
  start(flow, std::move(prepared), [slot](Result<Run> outcome) {
    slot->outcome = std::move(outcome);
    slot->gate.open();
  });
  runtime_.wait(slot->gate);
  return std::move(slot->outcome);
}

Result<Run> FlowsCore::get(std::string_view flow, std::string_view id) const {
  PAWL_TRY(const auto* definition, find_flow(flow));
  PAWL_TRY(auto* engine, engine());
  PAWL_TRY(const auto instance, engine->read(definition->name, id));
  auto run = to_run(instance);
  if (run.finished) return run;
  if (const auto values = engine->ephemerals(definition->name, id)) add_progress(run, *values);
  return run;
}

void FlowsCore::count(std::string_view flow, std::string_view step, std::string_view outcome) {
  const std::lock_guard lock(counts_mutex_);
  ++counts_[{std::string(flow), std::string(step)}][std::string(outcome)];
}

std::vector<FlowCounts> FlowsCore::counts() const {
  std::vector<FlowCounts> all;
  const std::lock_guard lock(counts_mutex_);
  for (const auto& [at, outcomes] : counts_) {
    for (const auto& [outcome, count] : outcomes) all.push_back({at.first, at.second, outcome, count});
  }
  return all;
}

}  // namespace pawl
