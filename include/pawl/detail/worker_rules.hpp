// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The rules of a worker, and why they are rules; `pawl/detail/worker_verify.hpp` applies them.

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
PAWL_DETAIL_RULE(a_worker_has_few_states, "a worker has at most 32 states: more are several workers");
PAWL_DETAIL_RULE(
    a_state_is_empty,
    "a state has no fields: it says where the worker is, and everything else is in the snapshot, so that "
    "the same snapshot gives the same decision");
PAWL_DETAIL_RULE(
    a_state_has_one_phase,
    "a state derives from exactly one of pawl::phase::…: it says whether the worker rests, runs or stops");
PAWL_DETAIL_RULE(
    a_state_is_listed_once,
    "a state, or one of the same name, is listed twice: stored states are found by name, in any letters");
PAWL_DETAIL_RULE(
    the_first_state_rests,
    "the first state is of pawl::phase::Stopped: a worker that is parked or removed before it began is "
    "there already");
PAWL_DETAIL_RULE(a_state_has_next, "every state has: static pawl::Next<…> next(State, const Snapshot&)");
PAWL_DETAIL_RULE(
    a_state_has_stop,
    "every state that neither rests nor stops has: static pawl::Next<…> stop(State, const Snapshot&); "
    "stopping goes before everything else");
PAWL_DETAIL_RULE(a_result_is_known,
                 "Next lists Stay, Go<State>, Do<Action>, Remove and Restart only: an answer is one of them, "
                 "never a state and an action together");
PAWL_DETAIL_RULE(
    going_leads_elsewhere,
    "Go names another state than its own: to remain is Stay, which a worker that is to stop cannot say");
PAWL_DETAIL_RULE(a_target_is_listed, "Go names a state that is not in States: nobody would be asked there");
PAWL_DETAIL_RULE(
    stopping_does_not_stay,
    "a worker that is to stop must not stay idle (Stay) or begin anew (Restart): it would be stuck");
PAWL_DETAIL_RULE(
    stopping_leads_to_rest,
    "a state that stops leads to states that stop or rest, never back: only a worker at rest is started");
PAWL_DETAIL_RULE(
    stopping_ends,
    "when it is to stop, this state never comes to rest: the worker could not be parked, removed or drained");
PAWL_DETAIL_RULE(a_state_is_reachable, "no state leads to this one: it is left over, or a Go is missing");
PAWL_DETAIL_RULE(
    an_active_state_acts,
    "a state called TryingTo… or Ensuring… has a Do<Action> in its next: its name says that it acts");
PAWL_DETAIL_RULE(
    an_action_is_empty,
    "an action has no fields: it is run again after failures and crashes and must not count on its own");
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
                 "Desired and Observed are plain structs that pawl/codec.hpp can write: they are stored");
PAWL_DETAIL_RULE(
    desired_has_no_lifecycle,
    "Desired has no field that says whether to run (should_run, is_running, running, enabled, disabled, "
    "active, is_active, shutdown, stopped): that is the supervisor's, and there must not be two answers");
#undef PAWL_DETAIL_RULE
// NOLINTEND(readability-identifier-naming)

}  // namespace worker_rule

}  // namespace pawl
