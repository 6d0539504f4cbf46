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

/// Sends an event of this machine to a run of any flow.
template <class E>
void send(const std::string& flow, const std::string& id, const E& event, Effects& effects) {
  if (auto payload = encode(event)) {
    effects.send(effect::Message{flow, id, std::string(event_name<run, E>()), *std::move(payload)});
  }
}

}  // namespace

RunControl& control_of(RunData& data) {
  if (!data.control) data.control.emplace();
  return *data.control;
}

RunFamily& family_of(RunData& data) {
  if (!data.family) data.family.emplace();
  return *data.family;
}

bool is_delayed(const RunData& data) { return data.plan && data.plan->not_before; }

bool waits_for_upstream(const RunData& data) {
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

bool is_for_other_run(const RunData& data, const UpstreamEnded& ended) {
  if (ended.dependent) return *ended.dependent != data.ulid;
  // Sent by an earlier release. The flow may have been renamed since, so compare the id alone.
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

/// Enters the run's queue, if it has one, and requests the step.
void run_step(RunData& data, Effects& effects) {
  enter_queue(data, effects);
  effects.work(data.step, Begin{});
}

/// Leaves the queue, so that other runs can proceed.
void pause(RunData& data, Effects& effects) {
  control_of(data).pause = false;
  effects.leave_queue();
}

void retry(RunData& data, Effects& effects) {
  auto& control = control_of(data);
  control.rewinds.try_emplace(data.step, 0);
  data.step = *control.retry;
  control.retry.reset();
  control.pause = false;
  if (data.family) data.family->children.clear();
  effects.work(data.step, Begin{});
}

void cancel(RunData& data, std::string reason, bool begun, Effects& effects) {
  auto& control = control_of(data);
  control.ending = RunState::cancelled;
  control.error = std::move(reason);
  control.cancel.reset();
  // Cleanup does not wait in the queue.
  effects.leave_queue();
  effects.work(std::string(kPlan), Plan{.begun = begun});
}

void clean_up(RunData& data, const std::string& next, Effects& effects) {
  control_of(data).cleanup = next;
  effects.work(next, Begin{});
}

void notify_end(const RunData& data, RunState state, Effects& effects) {
  if (!data.family) return;
  const RunRef self{std::string(effects.machine()), std::string(effects.key())};
  if (const auto& parent = data.family->parent)
    send(parent->flow, parent->id, ChildEnded{{self.flow, self.id, data.ulid}, state}, effects);
  for (const auto& dependent : data.family->dependents) {
    send(dependent.flow, dependent.id, UpstreamEnded{self, state, data.response, dependent.ulid}, effects);
  }
}

void record_child(RunData& data, const ChildEnded& ended) {
  auto& children = family_of(data).children;
  for (auto& child : children) {
    if (!is_same(child.run, ended.run)) continue;
    child.ended = ended.state;
    return;
  }
  // The step that started this child was rewound and has started another child with the same id.
  const bool late = std::ranges::any_of(
      children, [&](const ChildRun& child) { return !child.ended && has_same_id(child.run, ended.run); });
  if (!late) children.push_back({ended.run, ended.state});
}

void record_upstream(RunData& data, const UpstreamEnded& ended) {
  if (!data.plan || !data.plan->after) return;
  data.plan->after->ended = ended.state;
  data.plan->after->response = ended.response;
}

void record_done(RunData& data, const StepDone& done) {
  store_result(data, done);
  if (!done.next.empty()) data.step = done.next;
  for (const auto& started : done.children) {
    auto& children = family_of(data).children;
    std::erase_if(children, [&](const ChildRun& child) {
      return has_same_id(child.run, started) && !is_same(child.run, started);
    });
    const bool known =
        std::ranges::any_of(children, [&](const ChildRun& child) { return is_same(child.run, started); });
    if (!known) children.push_back({started});
  }
}

void record_rewound(RunData& data, const StepRewound& step) {
  store_result(data, step);
  auto& control = control_of(data);
  ++control.rewinds[step.step];
  control.error = step.reason;
  data.step = step.next;
  // The step starts its children again.
  if (data.family) data.family->children.clear();
}

void record_dependent(RunData& data, const ExactRun& dependent) {
  auto& dependents = family_of(data).dependents;
  const auto known =
      std::ranges::find_if(dependents, [&](const ExactRun& other) { return has_same_id(other, dependent); });
  if (known != dependents.end()) {
    *known = dependent;
  } else {
    dependents.push_back(dependent);
  }
}

void record_end(RunData& data, const StepEnded& end) {
  store_result(data, end);
  auto& control = control_of(data);
  control.ending = end.ending;
  control.error = end.reason;
  control.kind = end.kind;
}

void record_cleaned(RunData& data, const CleanedUp& cleaned) {
  if (cleaned.error) control_of(data).cleanup_errors.push_back(*cleaned.error);
}

}  // namespace flow_machine::detail
}  // namespace pawl
