// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The rules of a worker and their reasons; `pawl/detail/worker_verify.hpp` applies them.

namespace pawl {
namespace worker_rule {

// One type per rule: instantiating it is the error, its arguments are the offenders.
// NOLINTBEGIN(readability-identifier-naming): the names read as sentences in the compiler's message
template <class>
inline constexpr bool kBroken = false;
#define PAWL_DETAIL_RULE(name, text)    \
  template <class... Offenders>         \
  struct name {                         \
    static_assert(kBroken<name>, text); \
  }
PAWL_DETAIL_RULE(a_worker_has_states, "a worker lists its states: using States = pawl::States<…>");
PAWL_DETAIL_RULE(a_worker_has_few_states, "a worker has at most 32 states: split it into several workers");
PAWL_DETAIL_RULE(
    a_state_is_empty,
    "a state has no fields: everything a decision depends on is in the snapshot, so that the same snapshot "
    "gives the same decision");
PAWL_DETAIL_RULE(a_state_has_one_phase,
                 "a state derives from exactly one of pawl::phase::…, which says whether the worker is "
                 "stopped, runs or stops");
PAWL_DETAIL_RULE(
    a_state_is_listed_once,
    "a state, or one of the same name, is listed twice: stored states are found by name, ignoring case");
PAWL_DETAIL_RULE(
    the_first_state_rests,
    "the first state derives from pawl::phase::Stopped: a worker that is parked or removed before it started "
    "is in it already");
PAWL_DETAIL_RULE(a_state_has_next, "every state has: static pawl::Next<…> next(State, const Snapshot&)");
PAWL_DETAIL_RULE(
    a_state_has_stop,
    "every starting, running and degraded state has: static pawl::Next<…> stop(State, const Snapshot&); "
    "stopping has precedence over everything else");
PAWL_DETAIL_RULE(a_result_is_known,
                 "Next lists Stay, Go<State>, Do<Action>, Remove and Restart only: an answer is one of them, "
                 "never a state and an action together");
PAWL_DETAIL_RULE(
    going_leads_elsewhere,
    "Go names another state than its own: to remain there, answer Stay, which a stopping state cannot");
PAWL_DETAIL_RULE(a_target_is_listed, "Go names a state that is not in States: add it to the list");
PAWL_DETAIL_RULE(stopping_does_not_stay,
                 "a stopping worker must not answer Stay or Restart: it would never stop");
PAWL_DETAIL_RULE(
    stopping_leads_to_rest,
    "a stopping state leads to stopping or stopped states only: a worker starts from a stopped state");
PAWL_DETAIL_RULE(
    stopping_ends,
    "this state never leads to a stopped state: the worker could not be parked, removed or drained");
PAWL_DETAIL_RULE(a_state_is_reachable, "no state leads to this one: remove it, or add the missing Go");
PAWL_DETAIL_RULE(
    an_active_state_acts,
    "a state called TryingTo… or Ensuring… has a Do<Action> in its next: its name promises an action");
PAWL_DETAIL_RULE(an_action_is_empty,
                 "an action has no fields: it runs again after failures and crashes, which would lose them");
PAWL_DETAIL_RULE(
    an_action_runs,
    "an action has: static pawl::Result<void> run(Tools&, const Desired&, const pawl::ActionContext&)");
PAWL_DETAIL_RULE(a_worker_collects,
                 "a worker has: static pawl::Result<Observed> collect(Tools&, const Desired&, const "
                 "pawl::CollectContext&)");
PAWL_DETAIL_RULE(
    deriving_is_pure,
    "derive is: static pawl::Result<Desired> derive(Desired); it gets no tools, so that the same "
    "configuration always means the same");
PAWL_DETAIL_RULE(
    children_are_pure,
    "children is: static std::vector<pawl::ChildSpec> children(const Desired&, const pawl::UserSpec&); it "
    "gets no tools, so that the same configuration always gives the same children");
PAWL_DETAIL_RULE(desired_is_plain,
                 "Desired and Observed are plain structs that pawl/codec.hpp can encode: they are stored");
PAWL_DETAIL_RULE(
    desired_has_no_lifecycle,
    "Desired has no field that says whether to run (should_run, is_running, running, enabled, disabled, "
    "active, is_active, shutdown, stopped): the supervisor decides that, and there must be one answer only");
#undef PAWL_DETAIL_RULE
// NOLINTEND(readability-identifier-naming)

}  // namespace worker_rule

}  // namespace pawl
