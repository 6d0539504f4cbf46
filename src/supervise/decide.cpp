// SPDX-License-Identifier: Apache-2.0
// What is to be done with a worker, and whether now.
#include <fmt/format.h>

#include <algorithm>

#include "pawl/supervisor_kit.hpp"
#include "supervise/core.hpp"
#include "supervise/text.hpp"

namespace pawl {

namespace {

/// The same worker, action and count always give the same number, so that a back-off is the same after a
/// crash.
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

/// What a worker has answered, fit to be followed: a type that was not made by the compiler may answer
/// anything, and a reason is stored.
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
  if (!is_utf8(decision->reason.text()))
    decision->reason = Reason(supervise::as_utf8(decision->reason.text()));
  return decision;
}

}  // namespace

Intent SupervisorCore::intent_of(const Node& node) const {
  if (node.unwanted) return Intent::remove;
  if (drain_) return Intent::park;
  if (node.data->mapped == Intent::park || node.data->asked == Intent::park) return Intent::park;
  if (node.data->asked) return *node.data->asked;
  return node.data->enabled ? Intent::run : Intent::park;
}

/// Whoever is removed, or rests because the program ends, lets its children go first; the end of the program
/// does not wait for ever.
bool SupervisorCore::waits_for_children(const Node& node, Intent intent) const {
  if (intent == Intent::remove) return node.count_children() > 0;
  if (!drain_) return false;
  if (std::ranges::all_of(node.views, [](const ChildView& child) { return child.phase == Phase::stopped; }))
    return false;
  const auto levels = static_cast<std::int64_t>(height(node) - 1);
  return runtime_.instant() < drain_->began + drain_->base * levels;
}

void SupervisorCore::evaluate(Node& node) {
  if (node.gone) return;
  if (node.committing) {
    node.revisit = true;
    return;
  }
  node.revisit = false;
  if (const auto mapped = node.parent != nullptr ? mapped_intent(*node.parent, node) : std::nullopt;
      mapped && mapped != node.data->mapped)
    return commit(node, worker_event::Mapped{mapped});
  reconcile(node);
  const auto intent = intent_of(node);
  const bool stopping = intent != Intent::run || node.data->restart.has_value();
  if (stopping && !node.stopping) node.moves = 0;  // however many there were, its way to rest is another one
  node.stopping = stopping;
  if (stopping && evaluate_stop(node, intent)) return schedule(node);
  if (node.data->order || !may_decide(node, stopping)) {
    if (node.unsaved) commit(node, worker_event::Observed{Json{*node.unsaved}});
    return schedule(node);
  }
  ++stats_.decisions;
  const SnapshotParts now{
      .identity = *node.identity,
      .observed = node.observed.get(),
      .desired = node.desired.get(),
      .children = {node.views},
      .in_state = runtime_.instant() - node.entered,
      .failures = node.data->trouble ? node.data->trouble->failures : 0,
      .last_error = node.data->trouble ? std::string_view(node.data->trouble->error) : std::string_view(),
      .incarnation = node.data->incarnation};
  auto decision = checked(*node.type, node.type->decide(node.state, stopping, now));
  if (options_.trace) options_.trace(make_trace(*node.type, node.state, stopping, now, decision));
  if (decision) {
    if (node.breaker) node.breaker->probe_at.reset();
    follow(node, *std::move(decision), stopping);
  } else {
    record_exception(node, decision.error());
  }
  schedule(node);
}

/// Stopping has its own rules; true where nothing is to be decided beyond them.
bool SupervisorCore::evaluate_stop(Node& node, Intent intent) {
  const auto now = runtime_.instant();
  if (node.data->restart) {
    if (!node.restart_by) node.restart_by = now + options_.restart_within;
    if (now >= *node.restart_by) {
      commit(node,
             worker_event::Restarted{fmt::format("{}; it did not come to rest in time", *node.data->restart)},
             [this](const NodePtr& fresh) { restart_node(*fresh); });
      return true;
    }
  }
  if (node.data->order && !node.data->order->stops && !node.data->order->interrupted) {
    commit(node, worker_event::Interrupted{});
    return true;
  }
  if (node.data->order) return true;
  if (node.phase() == Phase::stopped) {
    rest(node, intent);
    return true;
  }
  if (waits_for_children(node, intent)) {
    explain(node, fmt::format("waits for {} children to {}", node.count_children(),
                              intent == Intent::remove ? "go" : "rest"));
    return true;
  }
  if (node.desired && node.observed) return false;
  // Without them it cannot be asked how it stops; this is the case after a release that cannot read its
  // configuration.
  if (intent != Intent::remove) return true;
  commit(node, worker_event::Removed{.reason = "it cannot be asked how it stops"},
         [this](const NodePtr& removed) { drop(removed); });
  return true;
}

/// At rest, and not to run.
void SupervisorCore::rest(Node& node, Intent intent) {
  if (intent == Intent::remove) {
    if (waits_for_children(node, intent))
      return explain(node, fmt::format("waits for {} children to go", node.count_children()));
    return commit(node, worker_event::Removed{.reason = "it is not wanted any more"},
                  [this](const NodePtr& removed) { drop(removed); });
  }
  if (node.data->restart) {
    return commit(node, worker_event::Restarted{*node.data->restart},
                  [this](const NodePtr& fresh) { restart_node(*fresh); });
  }
  if (node.unsaved) commit(node, worker_event::Observed{Json{*node.unsaved}});
  if (drain_) return explain(node, "rests: the program ends");
  explain(node,
          node.data->mapped == Intent::park ? Reason("parked by its parent's state") : Reason("parked"));
}

/// The gates before a decision. A stop passes all of them, except that it waits a moment to see what its own
/// last action has done.
bool SupervisorCore::may_decide(Node& node, bool stopping) {
  if (!node.desired || !node.observed) {
    set_health(node, node.config_error ? Health::config_error : Health::unobserved);
    return false;
  }
  if (!observed_after_action(node, stopping)) {
    if (stopping) node.again = node.barrier_at + options_.observe_timeout;
    return false;
  }
  if (node.moves > 2 * node.type->states.size()) {
    explain(node, "goes in circles: waits for the next observation");
    return false;
  }
  if (stopping) return true;
  const auto now = runtime_.instant();
  const auto every = node.type->observe_every.value_or(options_.observe_every);
  const auto stale_after = std::max(options_.stale_after, 2 * every + options_.observe_timeout);
  const auto seen = node.freshness.seen;
  if (!seen || now - *seen >= stale_after) {
    if (node.health != Health::lost) set_health(node, seen ? Health::stale : Health::unobserved);
    return false;
  }
  if (node.breaker && node.breaker->probe_at && now < *node.breaker->probe_at) {
    set_health(node, Health::open);
    return false;
  }
  set_health(node, node.config_error ? Health::config_error : Health::good);
  return true;
}

bool SupervisorCore::observed_after_action(const Node& node, bool stopping) const {
  if (node.freshness.seen_ticket > node.barrier_ticket) return true;
  return stopping && runtime_.instant() - node.barrier_at >= options_.observe_timeout;
}

void SupervisorCore::follow(Node& node, Decision decision, bool stopping) {
  auto observed = node.unsaved ? std::optional(Json{*node.unsaved}) : std::nullopt;
  const bool removes = decision.kind == Decision::Kind::remove && (node.unwanted || !stopping);
  if (node.leaving && !removes) {
    node.leaving = false;  // it has thought better of it before its children were gone
    node.reconciled = false;
  }
  switch (decision.kind) {
    case Decision::Kind::stay:
      explain(node, std::move(decision.reason));
      node.again = decision.again ? std::optional(runtime_.instant() + *decision.again) : std::nullopt;
      if (observed) commit(node, worker_event::Observed{*std::move(observed)});
      return;
    case Decision::Kind::go: {
      std::string reason(decision.reason.text());
      explain(node, std::move(decision.reason));
      return commit(node, worker_event::Moved{.to = node.type->states[decision.target].name,
                                              .reason = std::move(reason),
                                              .observed = std::move(observed)});
    }
    case Decision::Kind::act:
      return order(node, node.type->actions[decision.target], std::move(decision.reason), stopping);
    case Decision::Kind::remove:
      if (!removes) return rest_as_new(node, decision.reason);
      if (node.count_children() > 0) {
        node.leaving = true;
        reconcile(node);
        return explain(node, std::move(decision.reason));
      }
      return commit(
          node, worker_event::Removed{.reason = std::string(decision.reason.text()), .retired = !stopping},
          [this](const NodePtr& removed) { drop(removed); });
    case Decision::Kind::restart:
      return commit(node, worker_event::RestartAsked{std::string(decision.reason.text())});
  }
}

/// A worker that is parked, drained or built afresh may end its way to rest by saying that nothing of it is
/// left. It stays all the same: nobody wanted it to go.
void SupervisorCore::rest_as_new(Node& node, const Reason& reason) {
  auto why = node.data->restart ? *node.data->restart : std::string(reason.text());
  commit(node, worker_event::Restarted{std::move(why)},
         [this](const NodePtr& fresh) { restart_node(*fresh); });
}

void SupervisorCore::restart_node(Node& node) {
  ++stats_.restarts;
  reset_node(node);
  derive(node);
}

/// When this action may be ordered: failures are waited for longer and longer; success that had no effect,
/// too, but not longer than an observation takes.
Instant SupervisorCore::not_before(const Node& node, const WorkerType::Action& action) const {
  const auto& trouble = node.data->trouble;
  if (!trouble || trouble->action != action.name) return {};
  const auto now = runtime_.instant();
  // By the clock that cannot be set, where this run of the program has seen the end; else at least since it
  // began.
  const auto ago =
      node.acted ? now - *node.acted : std::max<Duration>(runtime_.now() - trouble->at, now - start_);
  auto policy = action.backoff.value_or(options_.backoff);
  auto count = trouble->failures;
  if (count == 0) {
    count = trouble->repeats;
    policy = {.retries = RetryPolicy::kUnlimited,
              .first = options_.tick,
              .factor = 2.0,
              .cap = std::max(options_.tick, node.type->observe_every.value_or(options_.observe_every)),
              .jitter = Jitter::none};
  }
  policy.retries = RetryPolicy::kUnlimited;
  const auto wait = delay_after(policy, count, jitter_seed(node.identity->path, action.name, count));
  return now + (wait.value_or(policy.cap) - ago);
}

void SupervisorCore::order(Node& node, const WorkerType::Action& action, Reason reason, bool stopping) {
  const auto when = not_before(node, action);
  if (when > runtime_.instant()) {
    explain(node, std::move(reason));
    node.again = when;
    if (node.unsaved) commit(node, worker_event::Observed{Json{*node.unsaved}});
    return;
  }
  ++stats_.actions;
  std::string text(reason.text());
  explain(node, std::move(reason));
  node.again.reset();
  commit(node,
         worker_event::Ordered{.action = action.name,
                               .reason = std::move(text),
                               .stops = stopping || node.phase() == Phase::stopping,
                               .observed = node.unsaved ? std::optional(Json{*node.unsaved}) : std::nullopt});
}

/// After a few exceptions the worker is left alone, longer and longer; others are not concerned.
void SupervisorCore::record_exception(Node& node, const Error& error) {
  ++stats_.exceptions;
  log_throttled(node, "a worker threw", error);
  const auto now = runtime_.instant();
  if (!node.breaker) node.breaker = std::make_unique<supervise::Breaker>();
  auto& breaker = *node.breaker;
  breaker.error = error.to_string();
  std::erase_if(breaker.throws, [&](Instant at) { return now - at >= options_.breaker_window; });
  if (breaker.throws.empty()) breaker.opened = 0;
  breaker.throws.push_back(now);
  if (breaker.throws.size() < options_.breaker_throws) {
    node.again = now + options_.tick;
    return;
  }
  ++breaker.opened;
  const auto wait = delay_after(options_.backoff, breaker.opened,
                                jitter_seed(node.identity->path, "probe", breaker.opened));
  breaker.probe_at = now + wait.value_or(options_.backoff.cap);
  node.again = breaker.probe_at;
  set_health(node, Health::open);
}

/// The present reason; only a step stores it.
void SupervisorCore::explain(Node& node, Reason reason) {
  if (node.reason.text() == reason.text()) return;
  node.reason = std::move(reason);
  update_parent_view(node);
}

void SupervisorCore::set_health(Node& node, Health health) {
  if (node.health == health) return;
  node.health = health;
  update_parent_view(node);
  if (node.parent != nullptr) node.parent->again = runtime_.instant();
  if (node.parent != nullptr) schedule(*node.parent);
}

}  // namespace pawl
