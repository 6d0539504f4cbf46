// SPDX-License-Identifier: Apache-2.0
#include "workers/types/group.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::workers {
namespace {

/// A stopped child is as it should be: its mapping or an operator parked it. So is one that is starting,
/// until an action of it fails.
bool is_impaired(const ChildView& child) {
  if (child.is_healthy() || child.phase == Phase::stopped) return false;
  return child.phase != Phase::starting || !child.fresh || child.failing;
}

std::size_t count_impaired(const Group::Snapshot& now) {
  return static_cast<std::size_t>(std::ranges::count_if(now.children.all, is_impaired));
}

std::string in_words(const Group::Snapshot& now) {
  return fmt::format("{} of {} children are impaired", count_impaired(now), now.children.all.size());
}

}  // namespace

Result<void> Group::Wait::run(NoTools&, const GroupDesired&, const ActionContext&) { return {}; }

Next<Go<Group::Active>> Group::next(Stopped, const Snapshot&) { return Go<Active>{"it should run"}; }

Next<Go<Group::Impaired>, Stay> Group::next(Active, const Snapshot& now) {
  if (count_impaired(now) > 0) return Go<Impaired>{in_words(now)};
  return Stay{in_words(now)};
}

Next<Go<Group::Active>, Stay> Group::next(Impaired, const Snapshot& now) {
  if (count_impaired(now) == 0) return Go<Active>{in_words(now)};
  return Stay{in_words(now)};
}

Next<Go<Group::Stopped>, Do<Group::Wait>> Group::next(Closing, const Snapshot& now) {
  if (now.children.all_stopped()) return Go<Stopped>{"its children are stopped"};
  return Do<Wait>{fmt::format("{} of {} children are stopped", now.children.count(Phase::stopped),
                              now.children.all.size())};
}

Next<Go<Group::Closing>> Group::stop(Active, const Snapshot&) { return Go<Closing>{"it has to stop"}; }
Next<Go<Group::Closing>> Group::stop(Impaired, const Snapshot&) {
  return Go<Closing>{"it has to stop while a child is impaired"};
}

Result<GroupDesired> Group::derive(GroupDesired read) {
  PAWL_CHECK(to_specs(read.children));
  return read;
}

std::vector<ChildSpec> Group::children(const GroupDesired& desired, const UserSpec&) {
  return to_specs(desired.children).value_or(std::vector<ChildSpec>());  // checked by `derive`
}

Result<GroupObserved> Group::collect(NoTools&, const GroupDesired&, const CollectContext&) {
  return GroupObserved{};
}

void add_group(WorkerTypes& types) { types.add<Group>(); }

}  // namespace pawl::workers
