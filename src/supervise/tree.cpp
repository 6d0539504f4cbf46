// SPDX-License-Identifier: Apache-2.0
// Desired state, and children.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "supervise/core.hpp"
#include "supervise/marked.hpp"

namespace pawl {

using supervise::kTopPath;
using supervise::Membership;
using State = supervise::PendingChild::State;

namespace {

constexpr std::size_t kNameMax = 63;

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kNameMax || name == "." || name == "..") return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

bool is_not_creating(const std::pair<const std::string, supervise::PendingChild>& child) {
  return child.second.state != State::creating;
}

std::string path_of(std::string_view parent, std::string_view name) {
  return parent == kTopPath ? std::string(name) : fmt::format("{}/{}", parent, name);
}

}  // namespace

/// Reads the configuration again. If it is invalid, the worker and its children keep the last valid one.
void SupervisorCore::derive(Node& node) {
  auto desired = derive_desired(node, internal_of(node));
  Result<std::vector<ChildSpec>> children = std::vector<ChildSpec>{};
  if (desired && node.type->has_children) {
    children = node.type->children(desired->get(), node.data->spec);
    if (children) {
      auto valid = check_children(*node.type, node.identity->path, *children);
      if (valid) valid = check_free_of_internal(node, *children);
      if (!valid) children = fail(std::move(valid).error());
    }
  }
  const bool derived = desired.has_value();
  if (!derived || !children) {
    ++stats_.config_errors;
    node.config_error =
        std::make_unique<Error>(derived ? std::move(children).error() : std::move(desired).error());
    node.config_error->with("worker", node.identity->path);
    log_throttled(node, "the configuration of a worker is invalid", *node.config_error);
    set_health(node, Health::config_error);
    if (!derived || !node.desired) return;
  } else {
    node.config_error.reset();
    ++node.children_version;
    node.wants_children = !children->empty();
    std::erase_if(node.pending_children, is_not_creating);
    node.reconciled = false;
  }
  node.desired = *std::move(desired);
  node.tools->set_desired(node.desired);
  node.freshness.next = runtime_.instant();
  observe(node);
}

/// The same in every run of the program, so that a restart does not change the desired state.
InternalVariables SupervisorCore::internal_of(const Node& node) {
  return {.id = node.identity->path,
          .parent_id = node.identity->parent == kTopPath ? "" : node.identity->parent,
          .created_at = node.identity->created_at,
          .timestamp = node.data->specified_at.value_or(node.identity->created_at)};
}

/// Specifications of children are stored, internal variables are not. A parent may use them in any way, so
/// this derives the children a second time, with other values, and compares.
Result<void> SupervisorCore::check_free_of_internal(const Node& node,
                                                    const std::vector<ChildSpec>& children) const {
  if (children.empty() || !node.data->spec.config.contains(".internal")) return {};
  auto others = internal_of(node);
  others.id += "x";
  others.parent_id += "x";
  others.created_at += std::chrono::hours(1);
  others.timestamp += std::chrono::hours(1);
  const auto desired = derive_desired(node, others);
  const auto made = desired ? node.type->children(desired->get(), node.data->spec) : fail(desired.error());
  if (made && *made == children) return {};
  return fail(
      Code::spec_invalid,
      "internal variables are not stored, but a child's specification would contain them; the child has its "
      "own: write {{ \"{{ .internal.id }}\" }} in the child's configuration");
}

Result<std::shared_ptr<const void>> SupervisorCore::derive_desired(const Node& node,
                                                                   const InternalVariables& internal) const {
  if (node.is_top()) return node.type->derive(node.data->spec.config);
  PAWL_CHECK(validate(node.data->spec.variables));
  const supervise::MarkedTemplate config(node.data->spec.config, node.data->spec.variables, internal);
  if (config.text().find_first_not_of(" \t\r\n") == std::string::npos && !config.mistake())
    return node.type->derive("{}");
  PAWL_TRY(const auto document, config.fill(options_.read_config(config.text()), node.type->templates));
  auto derived = node.type->derive(document.json);
  if (derived) return derived;
  auto error = std::move(derived).error();
  // Decoding names the path; a worker's own `derive` names the field.
  std::string path(error.field("path"));
  if (path.empty()) path = fmt::format("$.{}", error.field("field"));
  if (const auto line = document.lines.find(path); line != document.lines.end())
    error.with("line", fmt::to_string(line->second));
  return fail(std::move(error));
}

Result<void> SupervisorCore::check_mapping(const WorkerType& parent, const WorkerType& child,
                                           const ChildSpec& spec) const {
  for (const auto& [state, target] : spec.state_mapping) {
    if (state != ChildSpec::kAnyState) PAWL_CHECK(parent.find_state(state));
    PAWL_CHECK(supervise::mapping_target(child, target));
  }
  return {};
}

Result<void> SupervisorCore::check_children(const WorkerType& parent, std::string_view path,
                                            const std::vector<ChildSpec>& children) const {
  std::set<std::string_view> names;
  if (children.size() > options_.children_max) {
    return fail(Code::spec_invalid, fmt::format("{} children, but at most {} are allowed", children.size(),
                                                options_.children_max));
  }
  for (const auto& child : children) {
    auto refuse = [&](Error error) -> Result<void> {
      Error located = std::move(error).while_(
          fmt::format("child \"{}\" of \"{}\"", child.name.substr(0, kNameMax), path));
      return fail(std::move(located.with("worker", path_of(path, child.name.substr(0, kNameMax)))));
    };
    if (!is_name(child.name)) {
      return refuse({Code::spec_invalid,
                     "a name consists of 1 to 63 letters, digits, '_', '-' and '.'",
                     {{"key", "name"}}});
    }
    if (!names.insert(child.name).second)
      return refuse({Code::spec_invalid, "two children have this name", {{"key", "name"}}});
    const auto type = types_.find(child.worker_type);
    if (!type) return refuse(Error(type.error()).with("key", "workerType"));
    if (const auto valid = validate(child.user_spec.variables); !valid) return refuse(valid.error());
    if (const auto valid = check_mapping(parent, **type, child); !valid)
      return refuse(Error(valid.error()).with("key", "stateMapping"));
  }
  return {};
}

/// Whether the children have to be reconciled without another cause: one had a commit in progress, or the
/// back-off of one that could not be created is over.
bool SupervisorCore::has_to_reconcile(const Node& node) const {
  if (node.membership != Membership::wanted || drain_ || !node.desired || node.config_error) return false;
  if (!node.reconciled && (node.wants_children || !node.children.empty())) return true;
  const auto now = runtime_.instant();
  return std::ranges::any_of(node.pending_children, [now](const auto& one) {
    const auto& child = one.second;
    return child.state == State::failed && child.not_before <= now;
  });
}

/// Creates, updates and removes children as desired. Does not wait for any of it.
void SupervisorCore::reconcile(Node& node) {
  if (node.children.empty() && !node.wants_children) return;
  if (drain_) return;
  if (node.membership != Membership::wanted) {
    std::erase_if(node.pending_children, is_not_creating);
    for (const auto& child : std::vector<NodePtr>(node.children)) {
      if (child->is_unwanted()) continue;
      child->membership = Membership::unwanted;
      evaluate(*child);
    }
    return;
  }
  // With an invalid configuration, the desired children are unknown.
  if (node.reconciled || node.config_error || !node.desired) return;
  node.reconciled = true;
  // Derived each time, which is rare, and not kept: the list would be most of the memory of a parent.
  const auto specs = node.type->children(node.desired.get(), node.data->spec);
  if (!specs) return record_exception(node, specs.error());
  std::map<std::string_view, const ChildSpec*> wanted;
  for (const auto& spec : *specs) wanted.emplace(spec.name, &spec);
  for (const auto& child : std::vector<NodePtr>(node.children)) {
    const auto found = wanted.find(child->identity->name);
    auto plan = supervise::plan_child(node, *child, found != wanted.end() ? found->second : nullptr);
    child->membership = plan.membership;
    if (plan.changed) {
      // The children of a child that is wanted again are wanted again, too.
      if (!child->is_unwanted()) child->reconciled = false;
      evaluate(*child);
    }
    if (plan.update && child->is_committing()) {
      node.reconciled = false;
    } else if (plan.update) {
      commit(*child, *std::move(plan.update));
    }
    if (found != wanted.end()) wanted.erase(found);
  }
  for (const auto& [_, spec] : wanted) create_child(node, *spec);
}

void SupervisorCore::create_child(Node& parent, const ChildSpec& spec) {
  auto& child = parent.pending_children[spec.name];
  if (child.state == State::creating || child.state == State::retired ||
      child.not_before > runtime_.instant())
    return;
  if (parent.depth >= options_.depth_max) {
    child.state = State::retired;
    const Error error(Code::spec_invalid,
                      fmt::format("the tree is deeper than {} levels", options_.depth_max));
    return log_throttled(parent, "a child cannot be created", error);
  }
  const auto type = types_.find(spec.worker_type);
  if (!type) return;  // checked when the specification was read
  const auto path = path_of(parent.identity->path, spec.name);
  const auto data = supervise::new_child(parent, spec, runtime_.now());
  if (const auto before = engine_->read((*type)->machine.name, path); before && before->finished) {
    const auto old = decode<WorkerData>(before->data);
    if (old && old->retired && old->spec == data.spec) {
      child.state = State::retired;
      return;
    }
  }
  auto text = encode(data);
  if (!text) return log_throttled(parent, "a child cannot be created", text.error());
  child.state = State::creating;
  child.children_version = parent.children_version;
  engine_->submit(Transaction{}.operation({.kind = Operation::Kind::create,
                                           .machine = (*type)->machine.name,
                                           .key = path,
                                           .json = *std::move(text)}),
                  [core = weak_from_this(), parent = parent.shared_from_this(),
                   spec](Result<std::vector<Instance>> outcome) mutable {
                    const auto alive = core.lock();
                    if (!alive) return;
                    auto one = outcome ? Result<Instance>(std::move(outcome->front()))
                                       : Result<Instance>(fail(std::move(outcome).error()));
                    alive->post([alive = alive.get(), parent = std::move(parent), spec = std::move(spec),
                                 one = std::move(one)]() mutable {
                      alive->child_created(*parent, spec, std::move(one));
                    });
                  });
}

/// The existing worker of this path, if it fits the specification: its parent was removed and added again, or
/// it was created by hand.
Result<Instance> SupervisorCore::find_created_child(const Node& parent, const ChildSpec& spec) const {
  PAWL_TRY(const auto type, types_.find(spec.worker_type));
  PAWL_TRY(auto instance, engine_->read(type->machine.name, path_of(parent.identity->path, spec.name)));
  PAWL_TRY(const auto data, data_of(instance));
  if (data->name == spec.name && data->type == spec.worker_type && data->parent == parent.identity->path &&
      !instance.finished && !nodes_.contains(instance.key))
    return instance;
  return fail(Code::duplicate_instance,
              fmt::format("\"{}\" already is the worker \"{}\" of type \"{}\" below \"{}\", and cannot be "
                          "\"{}\" of type \"{}\" below \"{}\"",
                          instance.key, data->name, data->type, data->parent, spec.name, spec.worker_type,
                          parent.identity->path));
}

void SupervisorCore::child_not_created(Node& parent, const std::string& name, const Error& error) {
  log_throttled(parent, "a child could not be created", error);
  if (parent.membership != Membership::wanted) {
    parent.pending_children.erase(name);
    return evaluate(parent);  // it may wait for this child
  }
  auto& child = parent.pending_children[name];
  child.state = State::failed;
  ++child.failures;
  const auto wait = delay_after(options_.backoff, child.failures, runtime_.random());
  child.not_before = runtime_.instant() + wait.value_or(options_.backoff.cap);
  parent.reconciled = false;
  parent.again = child.not_before;
  schedule(parent);
}

void SupervisorCore::child_created(Node& parent, const ChildSpec& spec, Result<Instance> outcome) {
  if (parent.is_removed()) return;
  // The parent's configuration may have changed meanwhile.
  if (parent.pending_children[spec.name].children_version != parent.children_version)
    parent.reconciled = false;
  if (!outcome && outcome.error().code() == Code::duplicate_instance) {
    outcome = find_created_child(parent, spec);
    parent.reconciled = false;
  }
  auto data = outcome ? data_of(*outcome) : fail(Error(outcome.error()));
  const auto type = data ? types_.find((*data)->type) : fail(Error(data.error()));
  if (!type) return child_not_created(parent, spec.name, type.error());
  if (!state_of(**type, *outcome)) {
    return child_not_created(
        parent, spec.name,
        {Code::unknown_state, fmt::format("\"{}\" is in state \"{}\", which the type \"{}\" does not have",
                                          outcome->key, outcome->state, (*type)->name)});
  }
  parent.pending_children.erase(spec.name);
  options_.log.info("a worker is added", {{"worker", outcome->key}, {"type", (*type)->name}});
  auto node = make_node(*type, *outcome, *std::move(data), &parent);
  node->index = all_.size();
  all_.push_back(node.get());
  nodes_.emplace(node->identity->path, node);
  reset_node(*node);
  derive(*node);
  evaluate(*node);
  if (!parent.reconciled || parent.membership != Membership::wanted) evaluate(parent);
}

// What a parent sees.

void SupervisorCore::update_parent_view(Node& node) {
  if (node.parent == nullptr) return;
  auto& parent = *node.parent;
  auto& view = parent.views[node.place];
  const bool failing = node.data->trouble && node.data->trouble->failures > 0;
  const bool changed = view.phase != node.phase() || view.failing != failing ||
                       view.fresh != (node.health == Health::good) ||
                       view.state != node.type->states[node.state].name;
  view = {.name = node.identity->name,
          .type = node.identity->type,
          .state = node.type->states[node.state].name,
          .reason = node.reason.text(),
          .phase = node.phase(),
          .fresh = node.health == Health::good,
          .failing = failing};
  if (!changed || stopped_) return;
  parent.again = runtime_.instant();
  schedule(parent);
}

}  // namespace pawl
