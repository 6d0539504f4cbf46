// SPDX-License-Identifier: Apache-2.0
#include "workers/types/parent.hpp"

#include <fmt/format.h>

namespace pawl::workers {
namespace {

constexpr std::uint32_t kMostChildren = 10'000;

/// Children that are desired and not made yet are not healthy either.
bool all_children_are_healthy(const Parent::Snapshot& now) {
  return now.children.all.size() >= now.desired.children_count && now.children.all_healthy();
}

std::string health(const Parent::Snapshot& now) {
  return fmt::format("{} of {} children are healthy", now.children.healthy(), now.desired.children_count);
}

bool has_run_long_enough(const Parent::Snapshot& now) {
  return now.desired.run_time > Duration::zero() && now.in_state >= now.desired.run_time;
}

std::string enough(const Parent::Snapshot& now) {
  return fmt::format("it has run for {}", to_string(now.desired.run_time));
}

Stay keep_running(const Parent::Snapshot& now) {
  Stay stay{health(now)};
  if (now.desired.run_time > Duration::zero()) stay.again = now.desired.run_time - now.in_state;
  return stay;
}

}  // namespace

Result<void> Parent::Start::run(ParentTools& tools, const ParentDesired&, const ActionContext& context) {
  if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped before it started");
  tools.started = true;
  return {};
}

Result<void> Parent::Stop::run(ParentTools& tools, const ParentDesired&, const ActionContext&) {
  tools.started = false;
  return {};
}

Next<Go<Parent::TryingToStart>, Stay> Parent::next(Stopped, const Snapshot& now) {
  if (now.in_state < now.desired.wait_time) {
    return Stay{.reason = fmt::format("it waits for {}", to_string(now.desired.wait_time)),
                .again = now.desired.wait_time - now.in_state};
  }
  return Go<TryingToStart>{"it should run"};
}

Next<Go<Parent::Running>, Do<Parent::Start>, Stay> Parent::next(TryingToStart, const Snapshot& now) {
  if (!now.observed.started) return Do<Start>{"it is not started yet"};
  if (all_children_are_healthy(now)) return Go<Running>{health(now)};
  return Stay{health(now)};
}

Next<Go<Parent::Degraded>, Go<Parent::TryingToStop>, Stay> Parent::next(Running, const Snapshot& now) {
  if (has_run_long_enough(now)) return Go<TryingToStop>{enough(now)};
  if (!all_children_are_healthy(now)) return Go<Degraded>{health(now)};
  return keep_running(now);
}

Next<Go<Parent::Running>, Go<Parent::TryingToStop>, Stay> Parent::next(Degraded, const Snapshot& now) {
  if (has_run_long_enough(now)) return Go<TryingToStop>{enough(now)};
  if (all_children_are_healthy(now)) return Go<Running>{health(now)};
  return keep_running(now);
}

Next<Go<Parent::Stopped>, Do<Parent::Stop>> Parent::next(TryingToStop, const Snapshot& now) {
  if (now.observed.started) return Do<Stop>{"it is still started"};
  if (!now.children.all_stopped()) {
    return Do<Stop>{fmt::format("{} of {} children are stopped", now.children.count(Phase::stopped),
                                now.children.all.size())};
  }
  return Go<Stopped>{"it is stopped, and its children are stopped"};
}

Next<Go<Parent::TryingToStop>> Parent::stop(TryingToStart, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it starts"};
}
Next<Go<Parent::TryingToStop>> Parent::stop(Running, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop"};
}
Next<Go<Parent::TryingToStop>> Parent::stop(Degraded, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it is degraded"};
}

Result<ParentDesired> Parent::derive(ParentDesired read) {
  if (read.children_count > kMostChildren) {
    return fail(Code::spec_invalid,
                fmt::format("children_count is {}; at most {}", read.children_count, kMostChildren),
                {{"field", "children_count"}});
  }
  if (read.wait_time < Duration::zero() || read.run_time < Duration::zero()) {
    return fail(Code::spec_invalid, "wait_time and run_time are not negative; zero means no cycling");
  }
  return read;
}

std::vector<ChildSpec> Parent::children(const ParentDesired& desired, const UserSpec&) {
  std::vector<ChildSpec> made;
  for (std::uint32_t i = 0; i < desired.children_count; ++i) {
    made.push_back({.name = fmt::format("child-{}", i),
                    .worker_type = desired.child_worker_type,
                    .user_spec = {.config = desired.child_config,
                                  .variables = {.user = {{"DEVICE_ID", {fmt::format("\"device-{}\"", i)}}}}},
                    .state_mapping = {{"Stopped", "park"},
                                      {"TryingToStart", "run"},
                                      {"Running", "run"},
                                      {"Degraded", "run"},
                                      {"TryingToStop", "park"}}});
  }
  return made;
}

Result<ParentObserved> Parent::collect(ParentTools& tools, const ParentDesired&, const CollectContext&) {
  return ParentObserved{.started = tools.started};
}

void add_parent(WorkerTypes& types) { types.add<Parent>(); }

}  // namespace pawl::workers
