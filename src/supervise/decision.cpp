// SPDX-License-Identifier: Apache-2.0
#include "supervise/decision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "supervise/text.hpp"

namespace pawl::supervise {

namespace {

/// Validates a worker's answer: a type that was not built by the compiler may return anything, and a reason
/// is stored.
Result<Decision> checked(const WorkerType& type, Result<Decision> decision) {
  if (!decision) return decision;
  const auto known = decision->kind == Decision::Kind::go    ? type.states.size()
                     : decision->kind == Decision::Kind::act ? type.actions.size()
                                                             : decision->target + 1;
  if (decision->target >= known || decision->kind > Decision::Kind::restart) {
    return fail(Code::worker_threw,
                fmt::format("{}: next answered with number {} of {} {}", type.name, decision->target, known,
                            decision->kind == Decision::Kind::go ? "states" : "actions"),
                {{"function", "next"}});
  }
  if (!is_utf8(decision->reason.text())) decision->reason = Reason(as_utf8(decision->reason.text()));
  return decision;
}

/// The same path, action and count always give the same number, so that a crash does not change a back-off.
std::uint64_t jitter_seed(std::string_view path, std::string_view action, std::uint32_t count) {
  std::uint64_t hash = 1469598103934665603ULL;
  auto mix = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  };
  mix(path);
  mix(action);
  hash = (hash ^ count) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

/// Makes one decision.
class Decider {
 public:
  Decider(const NodeState& node, const DecisionContext& context)
      : node_(node),
        data_(*node.data),
        context_(context),
        intent_(intent_of(node, context.drain_until.has_value())) {}

  void run() {
    outcome_.stopping = intent_ != Intent::run || data_.restart.has_value();
    if (outcome_.stopping && !may_ask_to_stop()) return;
    if (data_.order || !may_ask()) return commit_observation();
    ask();
  }

  /// The conditions of a decision. Stopping needs the first two only, and waits a moment for an observation
  /// that shows what its last action has done.
  bool may_ask() {
    if (!node_.desired || !node_.observed) {
      set_health(node_.config_error ? Health::config_error : Health::unobserved);
      return false;
    }
    if (!observed_after_action()) {
      if (stopping()) add(action::DecideAt{node_.barrier_at + context_.options.observe_timeout});
      return false;
    }
    // The beginning of stopping resets the count.
    const auto moves = stopping() && !node_.stopping ? 0 : node_.moves;
    if (moves > 2 * node_.type->states.size()) {
      add(action::SetReason{"changes its state in circles; waits for the next observation"});
      return false;
    }
    return stopping() || is_fresh();
  }

  Outcome take() { return std::move(outcome_); }

 private:
  bool stopping() const { return outcome_.stopping; }
  void add(Action action) { outcome_.actions.push_back(std::move(action)); }
  void commit(Event event) { add(action::Commit{std::move(event)}); }
  void set_health(Health health) {
    if (node_.health != health) add(action::SetHealth{health});
  }
  std::optional<Json> unsaved() const {
    return node_.unsaved ? std::optional(Json{*node_.unsaved}) : std::nullopt;
  }
  void commit_observation() {
    if (node_.unsaved) commit(worker_event::Observed{Json{*node_.unsaved}});
  }

  bool observed_after_action() const {
    if (node_.freshness.seen_ticket > node_.barrier_ticket) return true;
    return stopping() && context_.now - node_.barrier_at >= context_.options.observe_timeout;
  }

  bool is_fresh() {
    const auto every = observe_interval(*node_.type, context_.options);
    const auto stale_after =
        std::max(context_.options.stale_after, 2 * every + context_.options.observe_timeout);
    const auto seen = node_.freshness.seen;
    if (!seen || context_.now - *seen >= stale_after) {
      if (node_.health != Health::lost) set_health(seen ? Health::stale : Health::unobserved);
      return false;
    }
    if (node_.breaker && node_.breaker->probe_at && context_.now < *node_.breaker->probe_at) {
      set_health(Health::open);
      return false;
    }
    set_health(node_.config_error ? Health::config_error : Health::good);
    return true;
  }

  /// Whether a stopping worker decides itself how to go on.
  bool may_ask_to_stop() {
    if (data_.restart) {
      const auto by = node_.restart_by.value_or(context_.now + context_.options.restart_within);
      if (!node_.restart_by) add(action::RestartBy{by});
      if (context_.now >= by) {
        commit(worker_event::Restarted{fmt::format("{}; it did not stop in time", *data_.restart)});
        return false;
      }
    }
    if (data_.order) {
      if (!data_.order->stops && !data_.order->interrupted) commit(worker_event::Interrupted{});
      return false;
    }
    if (node_.phase() == Phase::stopped) {
      rest();
      return false;
    }
    if (waits_for_children()) {
      add(action::SetReason{fmt::format("waits for {} children to {}", node_.count_children(),
                                        intent_ == Intent::remove ? "be removed" : "stop")});
      return false;
    }
    if (node_.desired && node_.observed) return true;
    // For example, because this release cannot read its configuration.
    if (intent_ == Intent::remove)
      commit(worker_event::Removed{
          .reason = "its stop path is unknown without a valid configuration and an observation"});
    return false;
  }

  /// In a stopped state, and not to run.
  void rest() {
    if (intent_ == Intent::remove) {
      if (waits_for_children()) {
        add(action::SetReason{fmt::format("waits for {} children to be removed", node_.count_children())});
      } else {
        commit(worker_event::Removed{.reason = "it is no longer desired"});
      }
      return;
    }
    if (data_.restart) return commit(worker_event::Restarted{*data_.restart});
    commit_observation();
    if (context_.drain_until) {
      add(action::SetReason{"stopped, because the program ends"});
    } else {
      add(action::SetReason{data_.mapped == Intent::park ? Reason("parked by its parent's state")
                                                         : Reason("parked")});
    }
  }

  /// On removal and draining, children go first; draining waits for a limited time.
  bool waits_for_children() const {
    if (intent_ == Intent::remove) return node_.count_children() > 0;
    if (!context_.drain_until) return false;
    const auto rests = [](const ChildView& child) { return child.phase == Phase::stopped; };
    return !std::ranges::all_of(node_.views, rests) && context_.now < *context_.drain_until;
  }

  void ask() {
    outcome_.asked = true;
    const SnapshotParts snapshot{
        .identity = *node_.identity,
        .observed = node_.observed.get(),
        .desired = node_.desired.get(),
        .children = {node_.views},
        .in_state = context_.now - node_.entered,
        .failures = data_.trouble ? data_.trouble->failures : 0,
        .last_error = data_.trouble ? std::string_view(data_.trouble->error) : std::string_view(),
        .incarnation = data_.incarnation};
    auto decision = checked(*node_.type, node_.type->decide(node_.state, stopping(), snapshot));
    if (context_.options.trace)
      add(action::Trace{make_trace(*node_.type, node_.state, stopping(), snapshot, decision)});
    if (!decision) return add(action::RecordException{std::move(decision).error()});
    if (node_.breaker && node_.breaker->probe_at) add(action::CloseBreaker{});
    follow(*std::move(decision));
  }

  void follow(Decision decision) {
    const bool removes = decision.kind == Decision::Kind::remove && (node_.is_unwanted() || !stopping());
    if (node_.membership == Membership::leaving && !removes) add(action::KeepChildren{});
    switch (decision.kind) {
      case Decision::Kind::stay:
        add(action::SetReason{std::move(decision.reason)});
        add(action::DecideAt{decision.again ? std::optional(context_.now + *decision.again) : std::nullopt});
        return commit_observation();
      case Decision::Kind::go: {
        std::string reason(decision.reason.text());
        add(action::SetReason{std::move(decision.reason)});
        return commit(worker_event::Moved{.to = node_.type->states[decision.target].name,
                                          .reason = std::move(reason),
                                          .observed = unsaved()});
      }
      case Decision::Kind::act:
        return order(node_.type->actions[decision.target], std::move(decision.reason));
      case Decision::Kind::remove:
        return removes ? remove(std::move(decision.reason)) : rest_as_new(decision.reason);
      case Decision::Kind::restart:
        return commit(worker_event::RestartAsked{std::string(decision.reason.text())});
    }
  }

  void remove(Reason reason) {
    if (node_.count_children() > 0) {
      add(action::RemoveChildren{});
      return add(action::SetReason{std::move(reason)});
    }
    commit(worker_event::Removed{.reason = std::string(reason.text()), .retired = !stopping()});
  }

  /// A worker that is parked, drained or restarted may answer Remove when nothing is left to stop. It is not
  /// removed, but begins a new incarnation, at rest.
  void rest_as_new(const Reason& reason) {
    commit(worker_event::Restarted{data_.restart ? *data_.restart : std::string(reason.text())});
  }

  void order(const WorkerType::Action& action, Reason reason) {
    std::string text(reason.text());
    add(action::SetReason{std::move(reason)});
    if (const auto when = earliest_start(action); when > context_.now) {
      add(action::DecideAt{when});
      return commit_observation();
    }
    add(action::DecideAt{});
    commit(worker_event::Ordered{.action = action.name,
                                 .reason = std::move(text),
                                 .stops = stopping() || node_.phase() == Phase::stopping,
                                 .observed = unsaved()});
  }

  /// The end of the back-off, which grows with failures in a row. It also grows with successes without
  /// effect, but only up to the interval of observations.
  Instant earliest_start(const WorkerType::Action& action) const {
    const auto& trouble = data_.trouble;
    if (!trouble || trouble->action != action.name) return {};
    const auto& options = context_.options;
    // If this run of the program has seen the end of the action, by the steady clock. Otherwise the wall
    // clock tells, which may have been set, but at least the time since the start counts.
    const auto ago = node_.acted ? context_.now - *node_.acted
                                 : std::max<Duration>(context_.wall_time - trouble->at,
                                                      context_.now - context_.attached_at);
    auto policy = action.backoff.value_or(options.backoff);
    auto count = trouble->failures;
    if (count == 0) {
      count = trouble->repeats;
      policy = {.retries = RetryPolicy::kUnlimited,
                .first = options.tick,
                .factor = 2.0,
                .cap = std::max(options.tick, observe_interval(*node_.type, options)),
                .jitter = Jitter::none};
    }
    policy.retries = RetryPolicy::kUnlimited;
    const auto wait = delay_after(policy, count, jitter_seed(node_.identity->path, action.name, count));
    return context_.now + (wait.value_or(policy.cap) - ago);
  }

  const NodeState& node_;
  const WorkerData& data_;
  const DecisionContext& context_;
  const Intent intent_;
  Outcome outcome_{};
};

}  // namespace

Duration observe_interval(const WorkerType& type, const SupervisorOptions& options) {
  return type.observe_every.value_or(options.observe_every);
}

Intent intent_of(const NodeState& node, bool draining) {
  if (node.is_unwanted()) return Intent::remove;
  if (draining) return Intent::park;
  if (node.data->mapped == Intent::park || node.data->asked == Intent::park) return Intent::park;
  if (node.data->asked) return *node.data->asked;
  return node.data->enabled ? Intent::run : Intent::park;
}

std::vector<Action> review_health(const NodeState& node, const DecisionContext& context) {
  Decider decider(node, context);
  (void)decider.may_ask();
  return decider.take().actions;
}

ChildPlan plan_child(const NodeState& parent, const NodeState& child, const ChildSpec* spec) {
  const bool same = spec != nullptr && spec->worker_type == child.identity->type;
  ChildPlan plan{.membership = child.membership, .changed = same == child.is_unwanted()};
  if (!same) {
    // A child of another type is created when this one is removed.
    plan.membership = spec != nullptr ? Membership::replaced : Membership::unwanted;
    return plan;
  }
  if (plan.changed) plan.membership = Membership::wanted;
  const auto& data = *child.data;
  auto wanted = new_child(parent, *spec, {});
  if (data.spec == wanted.spec && data.state_mapping == wanted.state_mapping &&
      data.enabled == wanted.enabled)
    return plan;
  plan.update = worker_event::Desired{.expected_version = data.desired_version,
                                      .spec = std::move(wanted.spec),
                                      .state_mapping = std::move(wanted.state_mapping),
                                      .enabled = wanted.enabled};
  return plan;
}

WorkerData new_child(const NodeState& parent, const ChildSpec& spec, Time now) {
  return {.name = spec.name,
          .type = spec.worker_type,
          .parent = parent.identity->path,
          .made_at = now,
          .spec = {spec.user_spec.config, inherit(parent.data->spec.variables, spec.user_spec.variables)},
          .state_mapping = spec.state_mapping,
          .enabled = spec.enabled};
}

Result<Intent> mapping_target(const WorkerType& type, std::string_view text) {
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
  return fail(Code::spec_invalid,
              fmt::format("{} is a transitional state of type \"{}\"; use a stopped or running state, "
                          "\"run\" or \"park\"",
                          type.states[state].name, type.name));
}

std::optional<Intent> mapped_intent(const NodeState& parent, const NodeState& child) {
  if (child.data->state_mapping.empty())
    return child.data->mapped ? std::optional(Intent::run) : std::nullopt;
  const auto& state = parent.type->states[parent.state].name;
  const std::string* target = nullptr;
  for (const auto& [name, wanted] : child.data->state_mapping) {
    if (detail::same_letters(name, state) || (name == ChildSpec::kAnyState && target == nullptr))
      target = &wanted;
  }
  if (target == nullptr) return child.data->mapped;
  const auto intent = mapping_target(*child.type, *target);
  return intent ? *intent : child.data->mapped;
}

Instant record_exception(Breaker& breaker, std::string_view path, const Error& error,
                         const SupervisorOptions& options, Instant now) {
  breaker.error = error.to_string();
  std::erase_if(breaker.throws, [&](Instant at) { return now - at >= options.breaker_window; });
  if (breaker.throws.empty()) breaker.opened = 0;
  breaker.throws.push_back(now);
  if (breaker.throws.size() < options.breaker_throws) return now + options.tick;
  ++breaker.opened;
  const auto wait = delay_after(options.backoff, breaker.opened, jitter_seed(path, "probe", breaker.opened));
  breaker.probe_at = now + wait.value_or(options.backoff.cap);
  return *breaker.probe_at;
}

Outcome decide(const NodeState& node, const DecisionContext& context) {
  Decider decider(node, context);
  decider.run();
  return decider.take();
}

}  // namespace pawl::supervise
