// SPDX-License-Identifier: Apache-2.0
#include "flow/run_machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pawl/names.hpp"

namespace pawl {

bool is_finished(RunState state) { return state >= RunState::done; }

namespace flow_machine::detail {
namespace {

bool satisfies(RunAfter on, RunState ended) {
  const bool success = ended == RunState::done || ended == RunState::handed_off;
  return on == RunAfter::always || (on == RunAfter::success) == success;
}

const Upstream* upstream_of(const RunData& data) {
  return data.plan && data.plan->after ? &*data.plan->after : nullptr;
}

bool has_same_id(const ExactRun& a, const ExactRun& b) { return a.flow == b.flow && a.id == b.id; }
bool is_same(const ExactRun& a, const ExactRun& b) {
  return a.ulid && b.ulid ? *a.ulid == *b.ulid : has_same_id(a, b);
}

/// Sends an event of this machine to a run of whatever flow.
template <class E>
void tell(const std::string& flow, const std::string& id, const E& event, Effects& effects) {
  if (auto payload = encode(event)) {
    effects.send(effect::Message{flow, id, std::string(event_name<run, E>()), *std::move(payload)});
  }
}

}  // namespace

RunControl& control_of(RunData& data) {
  if (!data.control) data.control.emplace();
  return *data.control;
}

RunFamily& family(RunData& data) {
  if (!data.family) data.family.emplace();
  return *data.family;
}

bool is_delayed(const RunData& data) { return data.plan && data.plan->not_before; }

bool must_wait(const RunData& data) {
  const auto* upstream = upstream_of(data);
  return upstream != nullptr && !upstream->ended;
}

bool is_unsatisfied(const RunData& data) {
  const auto* upstream = upstream_of(data);
  return upstream != nullptr && upstream->ended && !satisfies(upstream->on, *upstream->ended);
}

bool would_satisfy(const RunData& data, const UpstreamEnded& ended) {
  const auto* upstream = upstream_of(data);
  return upstream != nullptr && satisfies(upstream->on, ended.state);
}

bool is_for_another(const RunData& data, const UpstreamEnded& ended) {
  if (ended.dependent) return *ended.dependent != data.ulid;
  // Told by an earlier release. The flow may have another name by now, so that the id alone decides.
  const auto* upstream = upstream_of(data);
  return upstream == nullptr || upstream->run.id != ended.run.id;
}

std::string unsatisfied_reason(const RunData& data) {
  const auto& upstream = *upstream_of(data);
  return fmt::format("it comes after {} \"{}\" on {}, which ended as {}", upstream.run.flow, upstream.run.id,
                     enum_name(upstream.on), enum_name(*upstream.ended));
}

bool has_open_children(const RunData& data) {
  return data.family &&
         std::ranges::any_of(data.family->children, [](const ChildRun& child) { return !child.ended; });
}

void delay(RunData& data, Effects& effects) {
  effects.set_timer("delay", *data.plan->not_before - effects.now(), DelayOver{});
}

void watch(RunData&, Effects& effects) { effects.work(std::string(kWatch), Begin{}); }

void enter_queue(const RunData& data, Effects& effects) {
  if (data.plan && data.plan->queue) effects.enter_queue(*data.plan->queue, data.plan->priority);
}

/// Takes its place in the queue, if it has one, and asks for the step.
void run_step(RunData& data, Effects& effects) {
  enter_queue(data, effects);
  effects.work(data.step, Begin{});
}

/// Others may go on meanwhile.
void hold(RunData& data, Effects& effects) {
  control_of(data).pause = false;
  effects.leave_queue();
}

void retry(RunData& data, Effects& effects) {
  auto& wanted = control_of(data);
  wanted.rewinds.try_emplace(data.step, 0);
  data.step = *wanted.retry;
  wanted.retry.reset();
  wanted.pause = false;
  if (data.family) data.family->children.clear();
  effects.work(data.step, Begin{});
}

void cancel(RunData& data, std::string reason, bool begun, Effects& effects) {
  auto& why = control_of(data);
  why.ending = RunState::cancelled;
  why.error = std::move(reason);
  why.cancel.reset();
  // What is to be undone waits for nobody's turn.
  effects.leave_queue();
  effects.work(std::string(kPlan), Plan{.begun = begun});
}

void clean_up(RunData& data, const std::string& next, Effects& effects) {
  control_of(data).cleanup = next;
  effects.work(next, Begin{});
}

void tell_end(const RunData& data, RunState state, Effects& effects) {
  if (!data.family) return;
  const RunRef self{std::string(effects.machine()), std::string(effects.key())};
  if (const auto& parent = data.family->parent)
    tell(parent->flow, parent->id, ChildEnded{{self.flow, self.id, data.ulid}, state}, effects);
  for (const auto& dependent : data.family->dependents) {
    tell(dependent.flow, dependent.id, UpstreamEnded{self, state, data.response, dependent.ulid}, effects);
  }
}

void note_child(RunData& data, const ChildEnded& ended) {
  auto& children = family(data).children;
  for (auto& child : children) {
    if (!is_same(child.run, ended.run)) continue;
    child.ended = ended.state;
    return;
  }
  // The step that it was started by was gone back to, and has started it anew.
  const bool late = std::ranges::any_of(
      children, [&](const ChildRun& child) { return !child.ended && has_same_id(child.run, ended.run); });
  if (!late) children.push_back({ended.run, ended.state});
}

void note_upstream(RunData& data, const UpstreamEnded& ended) {
  if (!data.plan || !data.plan->after) return;
  data.plan->after->ended = ended.state;
  data.plan->after->response = ended.response;
}

void note_done(RunData& data, const StepDone& done) {
  keep_result(data, done);
  if (!done.next.empty()) data.step = done.next;
  for (const auto& started : done.children) {
    auto& children = family(data).children;
    std::erase_if(children, [&](const ChildRun& child) {
      return has_same_id(child.run, started) && !is_same(child.run, started);
    });
    const bool known =
        std::ranges::any_of(children, [&](const ChildRun& child) { return is_same(child.run, started); });
    if (!known) children.push_back({started});
  }
}

void note_rewound(RunData& data, const StepRewound& step) {
  keep_result(data, step);
  auto& why = control_of(data);
  ++why.rewinds[step.step];
  why.error = step.reason;
  data.step = step.next;
  // Those that are started again are waited for again.
  if (data.family) data.family->children.clear();
}

void note_dependent(RunData& data, const ExactRun& dependent) {
  auto& dependents = family(data).dependents;
  const auto known =
      std::ranges::find_if(dependents, [&](const ExactRun& other) { return has_same_id(other, dependent); });
  if (known != dependents.end()) {
    *known = dependent;
  } else {
    dependents.push_back(dependent);
  }
}

void note_end(RunData& data, const StepEnded& end) {
  keep_result(data, end);
  auto& why = control_of(data);
  why.ending = end.ending;
  why.error = end.reason;
  why.kind = end.kind;
}

void note_cleaned(RunData& data, const CleanedUp& cleaned) {
  if (cleaned.error) control_of(data).cleanup_errors.push_back(*cleaned.error);
}

}  // namespace flow_machine::detail
}  // namespace pawl
