// SPDX-License-Identifier: Apache-2.0
// The operations of `Supervisor`, called from any thread, and draining.
#include <fmt/format.h>

#include <algorithm>

#include "supervise/core.hpp"

namespace pawl {

using supervise::kTopPath;

namespace {

Error unknown_worker(std::string_view path) {
  return {Code::unknown_instance,
          fmt::format("no worker \"{}\"", path.substr(0, 256)),
          {{"worker", std::string(path.substr(0, 256))}}};
}

}  // namespace

/// Sends an event from outside and applies the outcome.
Result<Instance> SupervisorCore::send_and_wait(std::string_view path, std::string_view event,
                                               Result<std::string> payload) {
  PAWL_TRY(auto text, std::move(payload));
  std::string machine;
  PAWL_CHECK(on_lane([&] {
    const auto found = nodes_.find(path);
    if (found != nodes_.end()) machine = found->second->type->machine.name;
  }));
  if (machine.empty()) return fail(unknown_worker(path));
  auto sent = engine_->commit(Transaction{}.operation({.machine = std::move(machine),
                                                       .key = std::string(path),
                                                       .event = std::string(event),
                                                       .json = std::move(text)}));
  if (!sent) return fail(std::move(sent).error());
  auto instance = std::move(sent->front());
  PAWL_CHECK(on_lane([&] {
    const auto found = nodes_.find(path);
    if (found == nodes_.end() || instance.finished) return;
    take(*found->second, instance);
    evaluate(*found->second);
  }));
  return instance;
}

Result<void> SupervisorCore::check(const TreeSpec& tree) const {
  PAWL_CHECK(validate(tree.variables));
  PAWL_TRY(const auto top, types_.find(supervise::Application::kType));
  return check_children(*top, kTopPath, tree.children);
}

Result<std::pair<TreeSpec, std::int64_t>> SupervisorCore::applied() {
  UserSpec spec;
  std::int64_t version = 0;
  PAWL_CHECK(on_lane([&] {
    spec = top_->data->spec;
    version = top_->data->desired_version;
  }));
  PAWL_TRY(auto tree, decode<TreeSpec>(spec.config, {.bytes = std::size_t{64} << 20}));
  return std::pair(std::move(tree), version);
}

Result<std::int64_t> SupervisorCore::apply(const TreeSpec& tree, std::optional<std::int64_t> expected) {
  PAWL_CHECK(check(tree));
  PAWL_TRY(const auto now, applied());
  if (!expected) expected = now.second;
  if (now.first == tree && now.second == *expected) return now.second;
  worker_event::Desired desired{.expected_version = *expected};
  PAWL_TRY(desired.spec.config, encode(tree));
  desired.spec.variables = tree.variables;
  auto sent = send_and_wait(kTopPath, type_name<worker_event::Desired>(), encode(desired));
  if (!sent && sent.error().code() == Code::guard_refused) {
    return fail(Code::desired_conflict,
                fmt::format("the tree has changed since version {}; read it again", *expected));
  }
  if (!sent) return fail(std::move(sent).error());
  return *expected + 1;
}

/// Reads the stored top again: another thread may have changed it and not yet posted the outcome.
Result<void> SupervisorCore::reread_top() {
  PAWL_TRY(const auto type, types_.find(supervise::Application::kType));
  PAWL_TRY(const auto stored, engine_->read(type->machine.name, kTopPath));
  return on_lane([this, &stored] {
    take(*top_, stored);
    evaluate(*top_);
  });
}

/// Changes the desired state of the top, again after a conflict. Each conflict means that another change
/// succeeded, so many attempts are needed only if many people change it at once.
Result<std::int64_t> SupervisorCore::change_top(const std::function<Result<void>(TreeSpec&)>& change) {
  constexpr int kAttempts = 100;
  for (int attempt = 0;; ++attempt) {
    PAWL_TRY(auto now, applied());
    PAWL_CHECK(change(now.first));
    auto done = apply(now.first, now.second);
    if (done || done.error().code() != Code::desired_conflict || attempt == kAttempts) return done;
    PAWL_CHECK(reread_top());
  }
}

Result<void> SupervisorCore::ask(std::string_view path, std::optional<Intent> intent) {
  PAWL_CHECK(send_and_wait(path, type_name<worker_event::Asked>(), encode(worker_event::Asked{intent})));
  return {};
}

Result<void> SupervisorCore::restart(std::string_view path, std::string reason) {
  PAWL_CHECK(send_and_wait(path, type_name<worker_event::RestartAsked>(),
                           encode(worker_event::RestartAsked{std::move(reason)})));
  return {};
}

/// Failures are for people: decisions depend on `Node::health` only.
Health SupervisorCore::health_of(const Node& node) {
  const bool failing =
      node.phase() == Phase::degraded || (node.data->trouble && node.data->trouble->failures > 0);
  return node.health == Health::good && failing ? Health::failing : node.health;
}

WorkerView SupervisorCore::view(const Node& node) const {
  const auto now = runtime_.instant();
  WorkerView made{.identity = static_cast<const WorkerIdentity&>(*node.identity),
                  .state = node.type->states[node.state].name,
                  .phase = node.phase(),
                  .reason = std::string(node.reason.text()),
                  .health = health_of(node),
                  .intent = supervise::intent_of(node, drain_.has_value()),
                  .desired_version = node.data->desired_version,
                  .spec = node.data->spec,
                  .in_state = now - node.entered,
                  .collector_restarts = node.freshness.restarts,
                  .incarnation = node.data->incarnation,
                  .transitions = node.transitions,
                  .restarting = node.data->restart.has_value(),
                  .children = node.children.size()};
  if (node.config_error) {
    made.problem = node.config_error->to_string();
  } else if (node.breaker && node.breaker->probe_at) {
    made.problem = node.breaker->error;
  } else if (!node.freshness.error.empty()) {
    made.problem = node.freshness.error;
  } else if (node.data->trouble) {
    made.problem = node.data->trouble->error;
  }
  if (node.desired) {
    if (auto text = node.type->show_desired(node.desired.get())) made.desired = Json{*std::move(text)};
  }
  if (node.data->observed) made.observed = *node.data->observed;
  if (node.freshness.seen) made.observed_ago = now - *node.freshness.seen;
  if (node.data->order) made.action = node.data->order->action;
  if (node.data->trouble) {
    made.failures = node.data->trouble->failures;
    if (node.again && *node.again > now && made.failures > 0) made.next_try = *node.again - now;
  }
  for (const auto& child : node.views) made.children_healthy += child.is_healthy() ? 1U : 0U;
  for (const auto* child : children_by_path(node)) made.child_paths.push_back(child->identity->path);
  return made;
}

Result<WorkerView> SupervisorCore::show(std::string_view path) {
  Result<WorkerView> found = fail(unknown_worker(path));
  PAWL_CHECK(on_lane([&] {
    const auto node = nodes_.find(path);
    if (node != nodes_.end()) found = view(*node->second);
  }));
  return found;
}

/// Sorted here, because in memory the last child takes the place of a removed one.
std::vector<const SupervisorCore::Node*> SupervisorCore::children_by_path(const Node& node) {
  std::vector<const Node*> found;
  found.reserve(node.children.size());
  for (const auto& child : node.children) found.push_back(child.get());
  const auto path = [](const Node* child) -> const std::string& { return child->identity->path; };
  if (!std::ranges::is_sorted(found, {}, path)) std::ranges::sort(found, {}, path);
  return found;
}

/// Not recursive: a tree may be deep.
std::vector<const SupervisorCore::Node*> SupervisorCore::in_order() const {
  std::vector<const Node*> found;
  found.reserve(all_.size());
  std::vector<const Node*> ways{top_.get()};
  while (!ways.empty()) {
    const auto* node = ways.back();
    ways.pop_back();
    if (!node->is_top()) found.push_back(node);
    const auto children = children_by_path(*node);
    ways.insert(ways.end(), children.rbegin(), children.rend());
  }
  return found;
}

std::vector<WorkerView> SupervisorCore::tree() {
  std::vector<WorkerView> found;
  (void)on_lane([&] {
    found.reserve(all_.size());
    for (const auto* node : in_order()) found.push_back(view(*node));
  });
  return found;
}

std::vector<std::string> SupervisorCore::paths() {
  std::vector<std::string> found;
  (void)on_lane([&] {
    found.reserve(all_.size());
    for (const auto* node : in_order()) found.push_back(node->identity->path);
  });
  return found;
}

std::map<std::string, std::map<Phase, std::size_t>> SupervisorCore::counts() {
  std::map<std::string, std::map<Phase, std::size_t>> found;
  (void)on_lane([&] {
    for (const auto* node : all_) {
      if (!node->is_top()) ++found[node->type->name][node->phase()];
    }
  });
  return found;
}

std::map<std::string, std::map<Health, std::size_t>> SupervisorCore::health_counts() {
  std::map<std::string, std::map<Health, std::size_t>> found;
  (void)on_lane([&] {
    for (const auto* node : all_) {
      if (!node->is_top()) ++found[node->type->name][health_of(*node)];
    }
  });
  return found;
}

SupervisorStats SupervisorCore::stats() {
  SupervisorStats found;
  (void)on_lane([&] {
    found = stats_;
    found.exceptions += thrown_by_actions_;
    found.workers = all_.size() - 1;
    found.abandoned = collectors_->abandoned();
  });
  return found;
}

// The end of the program.

std::size_t SupervisorCore::height(const Node& node) const {
  std::size_t most = 0;
  for (const auto& child : node.children) most = std::max(most, height(*child));
  return most + 1;
}

DrainReport SupervisorCore::drain(Duration base) {
  struct Slot {
    Gate gate;
    DrainReport report;
  };
  auto slot = std::make_shared<Slot>();
  const auto begun = on_lane([&, slot] {
    auto before = drain_ ? std::move(drain_->done) : std::function<void(DrainReport)>();
    drain_ = Drain{.began = runtime_.instant(),
                   .base = base,
                   .done = [slot, before = std::move(before)](const DrainReport& report) {
                     slot->report = report;
                     slot->gate.open();
                     if (before) before(report);
                   }};
    for (auto* node : std::vector<Node*>(all_)) evaluate(*node);
    continue_drain();
    arm();
  });
  if (!begun) return {};
  runtime_.wait(slot->gate);
  return slot->report;
}

/// Ends the drain when all workers rest or its time is over. The top stands for the program and need not
/// rest.
void SupervisorCore::continue_drain() {
  if (!drain_ || !drain_->done) return;
  DrainReport report;
  for (const auto* node : all_) {
    if (!node->is_top() && node->phase() != Phase::stopped) report.cut.push_back(node->identity->path);
  }
  const auto levels = static_cast<std::int64_t>(height(*top_) - 1);
  const bool over = runtime_.instant() >= drain_->began + drain_->base * levels;
  if (!report.cut.empty() && !over) return;
  std::ranges::sort(report.cut);
  report.clean = report.cut.empty();
  if (!report.clean) {
    options_.log.warn("workers did not stop in time",
                      {{"worker", report.cut.front()}, {"workers", report.cut.size()}});
  }
  std::exchange(drain_->done, {})(std::move(report));
}

void SupervisorCore::force() {
  post([this] {
    if (!drain_ || !drain_->done) return;
    drain_->base = Duration::zero();
    continue_drain();
  });
}

}  // namespace pawl
