// SPDX-License-Identifier: Apache-2.0
// How the events of a worker's machine change its data.
#include "pawl/detail/worker_machine.hpp"

namespace pawl::detail {

namespace {

/// The empty payload of an action's work; everything it needs is in the worker.
struct Begin {};

}  // namespace

void apply(WorkerData& data, const worker_event::Moved& event, Effects&) {
  data.reason = event.reason;
  data.trouble.reset();
  if (event.observed) data.observed = event.observed;
}

void apply(WorkerData& data, const worker_event::Ordered& event, Effects& effects) {
  data.reason = event.reason;
  data.order = WorkerOrder{.action = event.action, .stops = event.stops};
  if (data.trouble && data.trouble->action != event.action) data.trouble.reset();
  if (event.observed) data.observed = event.observed;
  effects.work(event.action, Begin{});
}

void apply(WorkerData& data, const worker_event::Ended& event, Effects& effects) {
  data.order.reset();
  if (event.cancelled) return;
  if (!data.trouble) data.trouble = WorkerTrouble{.action = event.action};
  auto& trouble = *data.trouble;
  trouble.at = effects.now();
  if (event.error) {
    ++trouble.failures;
    trouble.repeats = 0;
    trouble.error = *event.error;
  } else {
    trouble.failures = 0;
    ++trouble.repeats;
    trouble.error.clear();
  }
}

void apply(WorkerData& data, const worker_event::Interrupted&, Effects& effects) {
  data.order->interrupted = true;
  effects.stop_work(data.order->action);
}

void apply(WorkerData& data, const worker_event::Desired& event, Effects& effects) {
  ++data.desired_version;
  if (data.spec != event.spec) data.specified_at = effects.now();
  data.spec = event.spec;
  data.state_mapping = event.state_mapping;
  data.enabled = event.enabled;
}

void apply(WorkerData& data, const worker_event::Observed& event, Effects&) { data.observed = event.content; }

void apply(WorkerData& data, const worker_event::Asked& event, Effects&) { data.asked = event.intent; }

void apply(WorkerData& data, const worker_event::Mapped& event, Effects&) { data.mapped = event.intent; }

void apply(WorkerData& data, const worker_event::RestartAsked& event, Effects&) {
  data.restart = event.reason;
}

/// Drops everything of the former incarnation, and its observation, which must not count for the new one.
void apply(WorkerData& data, const worker_event::Restarted& event, Effects& effects) {
  if (data.order) effects.cancel_work(data.order->action);
  data.reason = event.reason;
  data.order.reset();
  data.trouble.reset();
  data.observed.reset();
  data.restart.reset();
  ++data.incarnation;
}

void apply(WorkerData& data, const worker_event::Removed& event, Effects&) {
  data.reason = event.reason;
  data.order.reset();
  if (event.retired) data.retired = event.reason;
}

}  // namespace pawl::detail
