// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What to do with a worker, as a pure function of its state and the time. `SupervisorCore` executes the
/// actions.

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/supervisor.hpp"
#include "pawl/supervisor_kit.hpp"
#include "pawl/time.hpp"
#include "supervise/node_state.hpp"

namespace pawl::supervise {

/// What a decision depends on besides the worker.
struct DecisionContext {
  const SupervisorOptions& options;
  Instant now{};
  Time wall_time{};
  Instant attached_at{};                 ///< when this run of the program began to supervise
  std::optional<Instant> drain_until{};  ///< while draining: how long to wait for the children
};

/// The events that the supervisor commits.
using Event = std::variant<worker_event::Mapped, worker_event::Interrupted, worker_event::Observed,
                           worker_event::Moved, worker_event::Ordered, worker_event::Desired,
                           worker_event::RestartAsked, worker_event::Restarted, worker_event::Removed>;

namespace action {

/// Commit an event. A decision has at most one, because the worker is evaluated again when it is durable.
struct Commit {
  Event event;
};
struct SetReason {
  Reason reason;
};
struct SetHealth {
  Health health = Health::good;
};
/// Decide again at this time; without one, only after a change.
struct DecideAt {
  std::optional<Instant> at{};
};
/// Restart without the stop path at this time.
struct RestartBy {
  Instant at{};
};
/// The worker removes itself: remove its children first.
struct RemoveChildren {};
/// The worker does not remove itself any more: create its children again.
struct KeepChildren {};
/// Ask the running collection to stop: it takes too long.
struct StopCollection {};
/// Abandon the collection and start another one.
struct RestartCollecting {};
/// Restart the worker, because restarting the collection did not help.
struct RestartUnobserved {};
struct CloseBreaker {};
struct RecordException {
  Error error;
};
/// Pass the decision to `SupervisorOptions::trace`.
struct Trace {
  TraceEntry entry;
};

}  // namespace action

using Action = std::variant<action::Commit, action::SetReason, action::SetHealth, action::DecideAt,
                            action::RestartBy, action::RemoveChildren, action::KeepChildren,
                            action::StopCollection, action::RestartCollecting, action::RestartUnobserved,
                            action::CloseBreaker, action::RecordException, action::Trace>;

struct Outcome {
  bool stopping = false;  ///< the worker is being parked, removed or restarted
  bool asked = false;     ///< the worker's own `next` or `stop` was called
  std::vector<Action> actions{};
};

/// Decides on a worker that is not removed and has no commit in progress. Calls the worker's `next` or
/// `stop`, which is pure, too.
Outcome decide(const NodeState& node, const DecisionContext& context);

/// The health that follows from the age of the observation, as `decide` would set it for a running worker.
std::vector<Action> review_health(const NodeState& node, const DecisionContext& context);

/// What the worker should do. Removal has precedence, then draining, parking, `run` by a person, and
/// `enabled`.
Intent intent_of(const NodeState& node, bool draining);

/// What the parent's state asks of the child. Unchanged if the mapping does not name that state.
std::optional<Intent> mapped_intent(const NodeState& parent, const NodeState& child);

/// What follows for an existing child from its parent's configuration.
struct ChildPlan {
  Membership membership = Membership::wanted;
  bool changed = false;                           ///< it becomes wanted or unwanted
  std::optional<worker_event::Desired> update{};  ///< its specification has changed
};
/// `spec` is null if the configuration does not name the child.
ChildPlan plan_child(const NodeState& parent, const NodeState& child, const ChildSpec* spec);

/// The data of a child that is to be created.
WorkerData new_child(const NodeState& parent, const ChildSpec& spec, Time now);

/// The target of a state mapping: "run", "park" or a state of the child. A stopped state means park, a
/// running or degraded one means run. Error: `spec_invalid`.
Result<Intent> mapping_target(const WorkerType& child, std::string_view text);

/// Counts an exception and returns when to decide again. After too many in a short time the breaker opens:
/// decisions pause, each time for longer.
Instant record_exception(Breaker& breaker, std::string_view path, const Error& error,
                         const SupervisorOptions& options, Instant now);

/// The interval of collections.
Duration observe_interval(const WorkerType& type, const SupervisorOptions& options);

}  // namespace pawl::supervise
