// SPDX-License-Identifier: Apache-2.0
// Starting, stopping, and the nodes themselves.
#include "supervise/core.hpp"
#include "supervise/marked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "supervise/text.hpp"

namespace pawl {

using supervise::Application;
using supervise::kTopPath;
using supervise::Membership;
using supervise::ToolHolder;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

Result<ConfigDocument> read_json(std::string_view text) {
  return ConfigDocument{.json = supervise::quote_marks(text)};
}

SupervisorOptions checked(SupervisorOptions options) {
  require(options.tick > Duration::zero(), "SupervisorOptions::tick must be positive");
  require(options.observe_every > Duration::zero(), "SupervisorOptions::observe_every must be positive");
  require(options.observe_timeout > Duration::zero(), "SupervisorOptions::observe_timeout must be positive");
  require(options.observe_timeout < options.stale_after,
          "SupervisorOptions: observe_timeout must be less than stale_after");
  require(options.stale_after < options.lost_after,
          "SupervisorOptions: stale_after must be less than lost_after");
  require(options.collector_restarts > 0, "SupervisorOptions::collector_restarts must be positive");
  require(options.collect_stop_within >= Duration::zero(),
          "SupervisorOptions::collect_stop_within must not be negative");
  require(options.collectors > 0 && options.actions > 0,
          "SupervisorOptions: collectors and actions must be positive");
  require(validate(options.backoff).has_value(), "SupervisorOptions::backoff is not a valid policy");
  if (!options.read_config) options.read_config = read_json;
  return options;
}

}  // namespace

SupervisorCore::SupervisorCore(Runtime& runtime, WorkerTypes types, SupervisorOptions options)
    : runtime_(runtime),
      types_([&types]() -> WorkerTypes& { return types.add<Application>(); }()),
      options_(checked(std::move(options))) {}

void SupervisorCore::add_machines(Machines& machines) {
  machines.add_pool(std::string(Supervisor::kPool), options_.actions);
  for (const auto& type : types_.all()) {
    auto machine = type->machine;
    machine.readers = Readers::operators;  // specifications, variables and observations may hold secrets
    machine.steered_by = "its supervisor (/v1/workers)";
    machines.add(std::move(machine));
    for (const auto& action : type->actions) {
      auto ended = [name = action.name](const Error& error) {
        return reply(worker_event::Ended{.action = name,
                                         .error = supervise::as_utf8(error.message()),
                                         .cancelled = error.code() == Code::cancelled});
      };
      machines.add_work(type->machine.name, action.name,
                        {.run = [core = weak_from_this(), type, at = &action](
                                    const WorkContext& context, std::string_view) -> Result<Reply> {
                           if (const auto alive = core.lock()) return alive->perform(context, *type, *at);
                           return fail(Code::stopped, "the supervisor is gone");
                         },
                         .options = {.retry = kNever,
                                     .timeout = action.timeout,
                                     .pool = std::string(Supervisor::kPool),
                                     .overdue_frees_permit = true,
                                     .failed = std::move(ended),
                                     .again_after_crash = 3,
                                     .settled = [core = weak_from_this()](const Instance& instance) {
                                       if (const auto alive = core.lock())
                                         alive->settled(instance.key, instance);
                                     }}});
    }
  }
}

Result<void> SupervisorCore::on_lane(std::move_only_function<void()> work) {
  // Also opens the gate if the task is dropped because the lane ends first.
  struct Slot {
    Gate gate;
    bool done = false;
  };
  struct Opener {
    explicit Opener(std::shared_ptr<Slot> to_open) : slot(std::move(to_open)) {}
    Opener(Opener&&) noexcept = default;
    Opener& operator=(Opener&&) = delete;
    ~Opener() {
      if (slot) slot->gate.open();
    }
    std::shared_ptr<Slot> slot;
  };
  auto slot = std::make_shared<Slot>();
  post([work = std::move(work), opener = Opener(slot)]() mutable {
    work();
    opener.slot->done = true;
  });
  runtime_.wait(slot->gate);
  if (slot->done) return {};
  return fail(Code::stopped, "the supervisor is not attached to an engine");
}

/// From any thread. Drops the task if the supervisor is not attached.
void SupervisorCore::post(Task task) {
  const std::lock_guard lock(lane_mutex_);
  if (!stopped_) lane_->post(std::move(task));
}

Result<AttachReport> SupervisorCore::attach(Engine& engine) {
  PAWL_CHECK(types_.validate());
  engine_ = &engine;
  engine.before_close([core = weak_from_this(), closing = &engine] {
    if (const auto alive = core.lock(); alive && alive->engine_ == closing) alive->detach();
  });
  start_ = runtime_.instant();
  collectors_ = std::make_unique<supervise::Collectors>(
      runtime_,
      supervise::Collectors::Options{.threads = options_.collectors,
                                     .abandoned_max = options_.abandoned_max,
                                     .stop_within = options_.collect_stop_within},
      [this] { post([this] { take_observations(); }); });
  tool_destroyer_ = std::make_unique<supervise::ToolDestroyer>(runtime_, options_.collect_stop_within);
  lane_owner_ = runtime_.open_lane("supervise");
  lane_ = lane_owner_.get();
  stopped_ = false;
  AttachReport report;
  // On the lane, because ends of actions may arrive there from now on.
  Result<void> loaded;
  PAWL_CHECK(on_lane([&] { loaded = load(report); }));
  PAWL_CHECK(loaded);
  PAWL_CHECK(make_top());
  report.workers = nodes_.size() - 1;
  PAWL_CHECK(on_lane([this] {
    for (auto* node : std::vector<Node*>(all_)) derive(*node);
    for (auto* node : std::vector<Node*>(all_)) evaluate(*node);
    arm();
  }));
  const std::lock_guard lock(tools_mutex_);
  attached_ = true;
  for (const auto& gate : std::exchange(waiting_for_attach_, {})) gate->open();
  return report;
}

/// The order matters: no thread posts any more when the lane ends, and nothing runs on it when nodes are
/// freed.
void SupervisorCore::detach() {
  {
    const std::lock_guard lock(lane_mutex_);
    if (stopped_.exchange(true)) return;
  }
  collectors_->stop();
  lane_owner_.reset();
  if (drain_ && drain_->done) drain_->done({.clean = false});
  drain_.reset();
  collectors_.reset();
  tool_destroyer_.reset();
  for (auto* node : all_) wheel_.remove(*node);
  all_.clear();
  nodes_.clear();
  top_.reset();
  hung_.clear();
  const std::lock_guard lock(tools_mutex_);
  tool_holders_.clear();
}

// Nodes.

Result<void> SupervisorCore::load(AttachReport& report) {
  std::vector<NodePtr> loaded;
  for (const auto& type : types_.all()) {
    ListQuery query{.machine = type->machine.name, .finished = false, .limit = 1000};
    do {
      PAWL_TRY(const auto page, engine_->list(query));
      for (const auto& instance : page.instances) {
        PAWL_TRY(auto data, data_of(instance));
        if (!state_of(*type, instance)) {
          report.unknown.push_back(instance.key);
          options_.log.warn("a worker is in a state that its type does not have; it is not supervised",
                            {{"worker", instance.key}, {"type", type->name}, {"state", instance.state}});
          continue;
        }
        loaded.push_back(make_node(type, instance, std::move(data), nullptr));
      }
      query.cursor = page.next;
    } while (!query.cursor.empty());
  }
  link_all(std::move(loaded), report);
  PAWL_CHECK(find_unknown(report));
  std::ranges::sort(report.unknown);
  return {};
}

/// Reports the workers whose type this program does not have.
Result<void> SupervisorCore::find_unknown(AttachReport& report) const {
  const auto& unknown = engine_->report().unknown;
  const auto is_such = [&unknown](const std::string& machine) {
    return machine.starts_with("worker_") && std::ranges::find(unknown, machine) != unknown.end();
  };
  if (std::ranges::none_of(unknown, is_such)) return {};
  ListQuery query{.limit = 1000};
  do {
    PAWL_TRY(const auto page, engine_->list(query));
    for (const auto& instance : page.instances) {
      if (is_such(instance.machine) && instance.state != "removed") report.unknown.push_back(instance.key);
    }
    query.cursor = page.next;
  } while (!query.cursor.empty());
  return {};
}

/// Links parents before children. A worker whose parent has an unknown type is reported and not supervised.
void SupervisorCore::link_all(std::vector<NodePtr> loaded, AttachReport& report) {
  std::ranges::sort(loaded, {},
                    [](const NodePtr& node) -> const std::string& { return node->identity->path; });
  std::unordered_map<std::string, std::vector<NodePtr>> by_parent;
  for (auto& node : loaded) {
    if (node->identity->path == kTopPath) {
      top_ = node;
    } else {
      by_parent[node->identity->parent].push_back(node);
    }
  }
  if (!top_) return;
  std::vector<NodePtr> ways{top_};
  nodes_.emplace(top_->identity->path, top_);
  for (std::size_t at = 0; at < ways.size(); ++at) {
    const auto node = ways[at];
    reset_node(*node);
    node->index = all_.size();
    all_.push_back(node.get());
    const auto found = by_parent.find(node->identity->path);
    if (found == by_parent.end()) continue;
    for (const auto& child : found->second) {
      adopt(child, *node);
      nodes_.emplace(child->identity->path, child);
      ways.push_back(child);
    }
    by_parent.erase(found);
  }
  for (const auto& [_, orphans] : by_parent) {
    for (const auto& orphan : orphans) report.unknown.push_back(orphan->identity->path);
  }
}

/// The data of an instance; shares the engine's copy if there is one.
Result<std::shared_ptr<const WorkerData>> SupervisorCore::data_of(const Instance& instance) {
  if (instance.value != nullptr) return std::static_pointer_cast<const WorkerData>(instance.value);
  PAWL_TRY(auto data, decode<WorkerData>(instance.data, {.bytes = std::size_t{64} << 20}));
  return std::make_shared<const WorkerData>(std::move(data));
}

std::optional<std::size_t> SupervisorCore::state_of(const WorkerType& type, const Instance& instance) {
  const auto state = type.machine.find_state(instance.state);
  return state && *state < type.states.size() ? std::optional<std::size_t>(*state) : std::nullopt;
}

SupervisorCore::NodePtr SupervisorCore::make_node(const std::shared_ptr<const WorkerType>& type,
                                                  const Instance& instance,
                                                  std::shared_ptr<const WorkerData> data, Node* parent) {
  auto node = std::make_shared<Node>();
  node->identity = std::make_shared<supervise::WorkerShared>();
  static_cast<WorkerIdentity&>(*node->identity) = {.path = instance.key,
                                                   .name = data->name,
                                                   .type = type->name,
                                                   .parent = data->parent,
                                                   .created_at = data->made_at};
  if (auto hung = hung_.extract(instance.key)) node->identity->predecessor = std::move(hung.mapped());
  node->type = type;
  node->data = std::move(data);
  node->version = instance.version;
  node->entered = runtime_.instant();
  node->state = state_of(*type, instance).value_or(0);  // known: callers have checked it
  if (!node->data->reason.empty()) node->reason = Reason(node->data->reason);
  // Enough to stop on; any other decision needs an observation of this run.
  if (node->data->observed) {
    if (auto seen = type->read_observed(node->data->observed->text)) node->observed = *std::move(seen);
  }
  if (parent != nullptr) adopt(node, *parent);
  return node;
}

void SupervisorCore::adopt(const NodePtr& node, Node& parent) {
  node->parent = &parent;
  node->depth = parent.depth + 1;
  node->place = parent.children.size();
  parent.children.push_back(node);
  parent.views.emplace_back();
  update_parent_view(*node);
}

/// Begins a new incarnation: new tools, no observation, no history.
void SupervisorCore::reset_node(Node& node) {
  retire_tools(node);
  node.tools = std::make_shared<ToolHolder>(runtime_, node.type, node.identity);
  node.tools->set_desired(node.desired);
  publish_tools(node);
  give_up_collecting(node);
  node.freshness = {};
  node.freshness.since = runtime_.instant();
  node.freshness.next = runtime_.instant();
  node.breaker.reset();
  node.acted.reset();
  // An observation of the former incarnation or run may be older than its last action.
  node.barrier_at = runtime_.instant();
  node.barrier_ticket = last_ticket_;
  node.again.reset();
  node.restart_by.reset();
  node.moves = 0;
  node.unsaved.reset();
  node.health = Health::unobserved;
}

void SupervisorCore::publish_tools(const Node& node) {
  const std::lock_guard lock(tools_mutex_);
  tool_holders_.erase(node.identity->path);  // its key lives in the identity of the one before
  tool_holders_.emplace(node.tools->identity().path, node.tools);
}

/// Destroying tools may block, so another thread does it.
void SupervisorCore::retire_tools(Node& node) {
  if (!node.tools) return;
  {
    const std::lock_guard lock(tools_mutex_);
    tool_holders_.erase(node.identity->path);
  }
  tool_destroyer_->add(std::move(node.tools));
}

/// Drops the collection that is queued or running, so that it does not keep a thread of the pool.
void SupervisorCore::give_up_collecting(Node& node) {
  if (!node.freshness.is_collecting()) return;
  node.gave_up_collecting = true;
  node.slow = true;
  if (!collectors_->abandon(node.freshness.ticket)) collectors_->ask_to_stop(node.freshness.ticket);
}

/// A new worker may get the same path before that action returns.
void SupervisorCore::remember_hung_action(const Node& node) {
  std::erase_if(hung_, [](const auto& one) { return one.second->running == 0; });
  // While an action of its predecessor hung, it could not run one itself.
  std::shared_ptr<const supervise::WorkerShared> hung = node.identity;
  if (hung->running == 0) hung = node.identity->predecessor;
  if (hung && hung->running != 0) hung_.insert_or_assign(node.identity->path, std::move(hung));
}

/// Forgets a worker that was removed durably; its children were removed before it.
void SupervisorCore::forget(Node& node) {
  const auto keep = node.shared_from_this();
  node.activity = supervise::Activity::removed;
  wheel_.remove(node);
  give_up_collecting(node);
  remember_hung_action(node);
  retire_tools(node);
  auto& parent = *node.parent;
  // Swap with the last: with thousands of siblings, no other one is touched.
  parent.children.back()->place = node.place;
  parent.views[node.place] = parent.views.back();
  std::swap(parent.children[node.place], parent.children.back());
  parent.children.pop_back();
  parent.views.pop_back();
  parent.pending_children.erase(node.identity->name);
  // The parent may name it again, or a worker of another type.
  if (node.membership != Membership::unwanted) parent.reconciled = false;
  all_.back()->index = node.index;
  all_[node.index] = all_.back();
  all_.pop_back();
  nodes_.erase(node.identity->path);
  if (parent.children.empty()) return evaluate(parent);
  // If many are removed, their parent is evaluated once, not after each of them.
  parent.again = runtime_.instant();
  schedule(parent);
}

Result<void> SupervisorCore::make_top() {
  if (top_) return {};
  PAWL_TRY(const auto type, types_.find(Application::kType));
  WorkerData data{.name = std::string(Application::kType),
                  .type = std::string(Application::kType),
                  .made_at = runtime_.now()};
  PAWL_TRY(data.spec.config, encode(TreeSpec{}));
  PAWL_TRY(auto text, encode(data));
  PAWL_TRY(const auto created, engine_->commit(Transaction{}.operation({.kind = Operation::Kind::create,
                                                                        .machine = type->machine.name,
                                                                        .key = std::string(kTopPath),
                                                                        .json = std::move(text)})));
  top_ = make_node(type, created.front(), std::make_shared<const WorkerData>(std::move(data)), nullptr);
  reset_node(*top_);
  all_.push_back(top_.get());
  nodes_.emplace(top_->identity->path, top_);
  return {};
}

void SupervisorCore::log_throttled(Node& node, std::string_view what, const Error& error) {
  constexpr Duration kQuiet = std::chrono::minutes(1);
  const auto key = fmt::format("{} {} {}", node.identity->path, what, static_cast<int>(error.code()));
  const auto now = runtime_.instant();
  const auto [place, first] = logged_.emplace(key, now);
  if (!first && now - place->second < kQuiet) return;
  place->second = now;
  if (logged_.size() > 10'000) logged_.clear();
  options_.log.warn(what, {{"worker", node.identity->path}, {"error", error.to_string()}});
}

}  // namespace pawl
