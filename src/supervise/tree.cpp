// SPDX-License-Identifier: Apache-2.0
// What is desired of a worker, and its children.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "supervise/core.hpp"
#include "supervise/marked.hpp"

namespace pawl {

using supervise::Birth;
using supervise::kTopPath;

namespace {

constexpr std::size_t kNameMax = 63;

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kNameMax || name == "." || name == "..") return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

std::string path_of(std::string_view parent, std::string_view name) {
  return parent == kTopPath ? std::string(name) : fmt::format("{}/{}", parent, name);
}

/// "run" and "park", or a state of the child: one in which it rests means park, one in which it runs means
/// run.
Result<Intent> target_of(const WorkerType& type, std::string_view text) {
  for (const std::string_view word : {"run", "running"}) {
    if (detail::same_letters(word, text)) return Intent::run;
  }
  for (const std::string_view word : {"park", "parked", "stopped"}) {
    if (detail::same_letters(word, text)) return Intent::park;
  }
  PAWL_TRY(const auto state, type.find_state(text));
  switch (type.states[state].phase) {
    case Phase::stopped:
      return Intent::park;
    case Phase::running:
    case Phase::degraded:
      return Intent::run;
    case Phase::starting:
    case Phase::stopping:
      break;
  }
  return fail(
      Code::spec_invalid,
      fmt::format(
          "{} is a state that a worker of type \"{}\" only passes through; name one in which it rests "
          "or runs, or \"run\" or \"park\"",
          type.states[state].name, type.name));
}

}  // namespace

/// Reads the configuration anew. Where it cannot be read, the worker goes on with the last one that could,
/// and so do its children.
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
    log_once_in_a_while(node, "the configuration of a worker cannot be used", *node.config_error);
    set_health(node, Health::config_error);
    if (!derived || !node.desired) return;
  } else {
    node.config_error.reset();
    ++node.wishes;
    node.names_children = !children->empty();
    std::erase_if(node.births, [](const auto& birth) { return !birth.second.under_way; });
    node.reconciled = false;
  }
  node.desired = *std::move(desired);
  node.hands->desire(node.desired);
  node.sight.next = runtime_.instant();
  observe(node);
}

/// The same in every run of the program, so that none of them changes what is desired.
InternalVariables SupervisorCore::internal_of(const Node& node) {
  return {.id = node.identity->path,
          .parent_id = node.identity->parent == kTopPath ? "" : node.identity->parent,
          .created_at = node.identity->created_at,
          .timestamp = node.data->specified_at.value_or(node.identity->created_at)};
}

/// What a child is to be is stored, and internal variables are not. Whether they are in it is found out by
/// making it with others, because the parent may do anything with them.
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
  return fail(Code::spec_invalid,
              "internal variables are not stored, but would be in what a child is made of; the child has its "
              "own: write {{ \"{{ .internal.id }}\" }} where its configuration is");
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
  // Decoding names the path, a worker's own derive the field.
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
    PAWL_CHECK(target_of(child, target));
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
      return refuse(
          {Code::spec_invalid, "a name has 1 to 63 letters, digits, '_', '-' and '.'", {{"key", "name"}}});
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

/// Whether something is left to be done for the children that nobody else comes back to: one was busy, or
/// could not be made and has waited long enough.
bool SupervisorCore::has_to_reconcile(const Node& node) const {
  if (node.unwanted || node.leaving || drain_ || !node.desired || node.config_error) return false;
  if (!node.reconciled && (node.names_children || !node.children.empty())) return true;
  const auto now = runtime_.instant();
  return std::ranges::any_of(node.births, [now](const auto& one) {
    const Birth& birth = one.second;
    return !birth.under_way && !birth.retired && birth.failures > 0 && birth.not_before <= now;
  });
}

/// Makes the children what they should be, without waiting for any of it.
void SupervisorCore::reconcile(Node& node) {
  if (node.children.empty() && !node.names_children) return;
  if (drain_) return;
  if (node.unwanted || node.leaving) {
    std::erase_if(node.births, [](const auto& birth) { return !birth.second.under_way; });
    for (const auto& child : std::vector<NodePtr>(node.children)) {
      if (std::exchange(child->unwanted, true)) continue;
      evaluate(*child);
    }
    return;
  }
  // Where its configuration cannot be read, nothing is known of what is wanted.
  if (node.reconciled || node.config_error || !node.desired) return;
  node.reconciled = true;
  // Made anew each time, which is seldom, instead of kept: it is pure, and would be most of what a parent
  // needs.
  const auto specs = node.type->children(node.desired.get(), node.data->spec);
  if (!specs) return threw(node, specs.error());
  std::map<std::string_view, const ChildSpec*> wanted;
  for (const auto& spec : *specs) wanted.emplace(spec.name, &spec);
  for (const auto& child : std::vector<NodePtr>(node.children)) {
    const auto found = wanted.find(child->identity->name);
    const bool same = found != wanted.end() && found->second->worker_type == child->identity->type;
    child->replaced = found != wanted.end() && !same;
    if (child->unwanted == same) {
      child->unwanted = !same;
      evaluate(*child);
    }
    // One of another type goes first; then this is asked again.
    if (found != wanted.end()) {
      if (same) update(node, *child, *found->second);
      wanted.erase(found);
    }
  }
  for (const auto& [_, spec] : wanted) give_birth(node, *spec);
}

/// Hands a child its specification, where it has changed.
void SupervisorCore::update(Node& parent, Node& child, const ChildSpec& spec) {
  const UserSpec merged{spec.user_spec.config,
                        inherit(parent.data->spec.variables, spec.user_spec.variables)};
  const auto& data = child.data;
  if (data->spec == merged && data->state_mapping == spec.state_mapping && data->enabled == spec.enabled)
    return;
  if (child.committing) {
    parent.reconciled = false;
    return;
  }
  commit(child, worker_event::Desired{.expected_version = data->desired_version,
                                      .spec = merged,
                                      .state_mapping = spec.state_mapping,
                                      .enabled = spec.enabled});
}

void SupervisorCore::give_birth(Node& parent, const ChildSpec& spec) {
  auto& birth = parent.births[spec.name];
  if (birth.under_way || birth.retired || birth.not_before > runtime_.instant()) return;
  if (parent.depth >= options_.depth_max) {
    birth.retired = true;
    const Error error(Code::spec_invalid,
                      fmt::format("the tree is deeper than {} levels", options_.depth_max));
    return log_once_in_a_while(parent, "a child cannot be made", error);
  }
  const auto type = types_.find(spec.worker_type);
  if (!type) return;  // checked when the specification was read
  const auto path = path_of(parent.identity->path, spec.name);
  WorkerData data{
      .name = spec.name,
      .type = spec.worker_type,
      .parent = parent.identity->path,
      .made_at = runtime_.now(),
      .spec = {spec.user_spec.config, inherit(parent.data->spec.variables, spec.user_spec.variables)},
      .state_mapping = spec.state_mapping,
      .enabled = spec.enabled};
  if (const auto before = engine_->read((*type)->machine.name, path); before && before->finished) {
    const auto old = decode<WorkerData>(before->data);
    if (old && old->retired && old->spec == data.spec) {
      birth.retired = true;
      return;
    }
  }
  auto text = encode(data);
  if (!text) return log_once_in_a_while(parent, "a child cannot be made", text.error());
  birth.under_way = true;
  birth.wish = parent.wishes;
  engine_->submit(
      Transaction{}.operation({.kind = Operation::Kind::create,
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
                     one = std::move(one)]() mutable { alive->born(*parent, spec, std::move(one)); });
      });
}

/// The worker that has this path already, if it is the one that was to be made: its parent was removed and is
/// there again, or somebody has made it by hand.
Result<Instance> SupervisorCore::find_born(const Node& parent, const ChildSpec& spec) const {
  PAWL_TRY(const auto type, types_.find(spec.worker_type));
  PAWL_TRY(auto instance, engine_->read(type->machine.name, path_of(parent.identity->path, spec.name)));
  PAWL_TRY(const auto data, data_of(instance));
  if (data->name == spec.name && data->type == spec.worker_type && data->parent == parent.identity->path &&
      !instance.finished && !nodes_.contains(instance.key))
    return instance;
  return fail(Code::duplicate_instance,
              fmt::format("\"{}\" is the worker \"{}\" of type \"{}\" below \"{}\" already, and cannot be "
                          "\"{}\" of type \"{}\" below \"{}\"",
                          instance.key, data->name, data->type, data->parent, spec.name, spec.worker_type,
                          parent.identity->path));
}

void SupervisorCore::not_born(Node& parent, const std::string& name, const Error& error) {
  log_once_in_a_while(parent, "a child could not be made", error);
  if (parent.unwanted || parent.leaving) {
    parent.births.erase(name);
    return evaluate(parent);  // it may have waited for this one
  }
  auto& birth = parent.births[name];
  birth.under_way = false;
  ++birth.failures;
  const auto wait = delay_after(options_.backoff, birth.failures, runtime_.random());
  birth.not_before = runtime_.instant() + wait.value_or(options_.backoff.cap);
  parent.reconciled = false;
  parent.again = birth.not_before;
  schedule(parent);
}

void SupervisorCore::born(Node& parent, const ChildSpec& spec, Result<Instance> outcome) {
  if (parent.gone) return;
  // It may not be wanted any more, or be wanted otherwise.
  if (parent.births[spec.name].wish != parent.wishes) parent.reconciled = false;
  if (!outcome && outcome.error().code() == Code::duplicate_instance) {
    outcome = find_born(parent, spec);
    parent.reconciled = false;
  }
  auto data = outcome ? data_of(*outcome) : fail(Error(outcome.error()));
  const auto type = data ? types_.find((*data)->type) : fail(Error(data.error()));
  if (!type) return not_born(parent, spec.name, type.error());
  if (!state_of(**type, *outcome)) {
    return not_born(
        parent, spec.name,
        {Code::unknown_state, fmt::format("\"{}\" is in state \"{}\", which the type \"{}\" does not have",
                                          outcome->key, outcome->state, (*type)->name)});
  }
  parent.births.erase(spec.name);
  options_.log.info("a worker is added", {{"worker", outcome->key}, {"type", (*type)->name}});
  auto node = make_node(*type, *outcome, *std::move(data), &parent);
  node->index = all_.size();
  all_.push_back(node.get());
  nodes_.emplace(node->identity->path, node);
  freshen(*node);
  derive(*node);
  evaluate(*node);
  if (!parent.reconciled || parent.unwanted || parent.leaving) evaluate(parent);
}

// State mapping and views.

/// What the parent's present state wants of the child; as before where its mapping does not name that state.
std::optional<Intent> SupervisorCore::mapped_intent(const Node& parent, const Node& child) const {
  if (child.data->state_mapping.empty())
    return child.data->mapped ? std::optional(Intent::run) : std::nullopt;
  const auto& state = parent.type->states[parent.state].name;
  const std::string* target = nullptr;
  for (const auto& [name, wanted] : child.data->state_mapping) {
    if (detail::same_letters(name, state) || (name == ChildSpec::kAnyState && target == nullptr))
      target = &wanted;
  }
  if (target == nullptr) return child.data->mapped;
  const auto intent = target_of(*child.type, *target);
  return intent ? *intent : child.data->mapped;
}

void SupervisorCore::tell_parent(Node& node) {
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
