// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "pawl/supervisor_kit.hpp"

namespace pawl {

namespace {

std::string to_text(const WorkerType& type, const Result<Decision>& decision) {
  if (!decision) return "error " + decision.error().to_string();
  const auto reason = decision->reason.text();
  switch (decision->kind) {
    case Decision::Kind::stay:
      return fmt::format("stay: {}", reason);
    case Decision::Kind::go:
      return fmt::format("go {}: {}", type.states[decision->target].name, reason);
    case Decision::Kind::act:
      return fmt::format("do {}: {}", type.actions[decision->target].name, reason);
    case Decision::Kind::remove:
      return fmt::format("remove: {}", reason);
    case Decision::Kind::restart:
      return fmt::format("restart: {}", reason);
  }
  return {};
}

}  // namespace

TraceEntry make_trace(const WorkerType& type, std::size_t state, bool stopping, const SnapshotParts& parts,
                      const Result<Decision>& decision) {
  TraceEntry entry{.path = parts.identity.path,
                   .name = parts.identity.name,
                   .type = type.name,
                   .parent = parts.identity.parent,
                   .created_at = parts.identity.created_at,
                   .state = type.states[state].name,
                   .stopping = stopping,
                   .in_state = parts.in_state,
                   .failures = parts.failures,
                   .last_error = std::string(parts.last_error),
                   .incarnation = parts.incarnation,
                   .result = to_text(type, decision)};
  if (auto text = type.show_observed(parts.observed)) entry.observed = Json{*std::move(text)};
  if (auto text = type.show_desired(parts.desired)) entry.desired = Json{*std::move(text)};
  for (const auto& child : parts.children.all) {
    entry.children.push_back({std::string(child.name), std::string(child.type), std::string(child.state),
                              std::string(child.reason), child.phase, child.fresh, child.failing});
  }
  return entry;
}

Result<void> replay(const WorkerTypes& types, const TraceEntry& entry) {
  PAWL_TRY(const auto type, types.find(entry.type));
  PAWL_TRY(const auto state, type->find_state(entry.state));
  PAWL_TRY(const auto observed, type->read_observed(entry.observed.text));
  PAWL_TRY(const auto desired, type->derive(entry.desired.text));
  const WorkerIdentity identity{entry.path, entry.name, entry.type, entry.parent, entry.created_at};
  std::vector<ChildView> children;
  for (const auto& child : entry.children)
    children.push_back(
        {child.name, child.type, child.state, child.reason, child.phase, child.fresh, child.failing});
  const auto decision = type->decide(state, entry.stopping,
                                     {.identity = identity,
                                      .observed = observed.get(),
                                      .desired = desired.get(),
                                      .children = {children},
                                      .in_state = entry.in_state,
                                      .failures = entry.failures,
                                      .last_error = entry.last_error,
                                      .incarnation = entry.incarnation});
  if (auto text = to_text(*type, decision); text != entry.result) {
    return fail(Code::internal, fmt::format("{} in {} decided \"{}\", and now \"{}\"", entry.path,
                                            entry.state, entry.result, text));
  }
  return {};
}

}  // namespace pawl
