// SPDX-License-Identifier: Apache-2.0
// Runs as returned to callers.
#include <algorithm>

#include "flow/core.hpp"
#include "pawl/names.hpp"

namespace pawl {
namespace {

/// Refines the state: what a run does or waits for.
std::string status_of(const Instance& instance, const RunData& data, const FlowDefinition* flow) {
  if (instance.state != enum_name(RunState::running)) return instance.state;
  if (data.control && data.control->cancel) return "cancelling";
  if (data.control && data.control->retry) return "restarting";
  if (data.control && data.control->pause) return "pausing";
  if (instance.queue && !instance.queue->admitted) return "queued";
  if (instance.work.empty()) return instance.state;
  const auto& work = instance.work.front();
  if (work.not_before) return "retrying";
  if (work.attempt > 0) return instance.state;
  const auto step = flow == nullptr ? std::nullopt : flow->find(work.name);
  return step && flow->steps[*step].lease ? "offered" : "ready";
}

}  // namespace

Run FlowsCore::to_run(const Instance& instance) const {
  if (instance.value != nullptr) return to_run(instance, *static_cast<const RunData*>(instance.value.get()));
  auto data = decode<RunData>(instance.data);
  auto run = to_run(instance, data ? *std::move(data) : RunData{});
  if (!data) run.error = data.error().to_string();
  return run;
}

Run FlowsCore::to_run(const Instance& instance, RunData data) const {
  Run run{.flow = instance.machine,
          .id = instance.key,
          .status = instance.state,
          .finished = instance.finished,
          .generation = instance.generation,
          .created_at = instance.created_at,
          .at = instance.at};
  for (const auto state : enum_values<RunState>) {
    if (enum_name(state) == instance.state) run.state = state;
  }
  const auto flow = flows_.find(instance.machine);
  run.status = status_of(instance, data, flow == flows_.end() ? nullptr : flow->second.get());
  if (!instance.work.empty()) {
    run.attempt = instance.work.front().attempt;
    run.next_attempt = instance.work.front().not_before;
  }
  if (data.control) {
    run.error = data.control->error.value_or("");
    run.kind = data.control->kind;
    run.cleanup_errors = std::move(data.control->cleanup_errors);
  }
  run.ulid = std::move(data.ulid);
  run.step = std::move(data.step);
  run.request = std::move(data.request.text);
  run.response = std::move(data.response.text);
  run.plan = std::move(data.plan);
  run.family = std::move(data.family);
  return run;
}

void add_progress(Run& run, const std::map<std::string, std::string>& ephemerals) {
  const auto found = ephemerals.find("progress");
  if (found == ephemerals.end()) return;
  const auto document = JsonDocument::parse(found->second);
  if (!document) return;
  const auto text = [&](std::string_view name) {
    const auto value = document->root().find(name);
    return value ? value->as_string().value_or("") : std::string_view{};
  };
  // The value may be left over from an earlier run or step.
  if (text("run_ulid") != run.ulid || text("step") != run.step) return;
  if (const auto fraction = document->root().find("fraction")) run.progress = fraction->as_number();
  run.progress_text = text("text");
}

}  // namespace pawl
