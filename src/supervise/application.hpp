// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The top of the tree: a worker whose desired state is the list of the workers below it.

#include "pawl/supervisor.hpp"
#include "pawl/worker.hpp"

namespace pawl::supervise {

/// The key of the top; no worker can have it as its path.
inline constexpr std::string_view kTopPath = "(top)";

struct NothingObserved {};

struct Application : Worker<NothingObserved, TreeSpec> {
  static constexpr std::string_view kType = "application";
  static constexpr Duration kObserveEvery = std::chrono::hours(24 * 365);  // nothing to observe

  struct Stopped : phase::Stopped {};
  struct Running : phase::Running {};
  using States = pawl::States<Stopped, Running>;

  static Next<Go<Running>> next(Stopped, const Snapshot&) { return Go<Running>{"the program runs"}; }
  static Next<Stay> next(Running, const Snapshot&) { return Stay{"the program runs"}; }
  static Next<Go<Stopped>> stop(Running, const Snapshot&) { return Go<Stopped>{"all others rest"}; }

  static Result<NothingObserved> collect(NoTools&, const TreeSpec&, const CollectContext&) {
    return NothingObserved{};
  }
  static std::vector<ChildSpec> children(const TreeSpec& tree, const UserSpec&) { return tree.children; }
};

static_assert(verified_worker<Application>);

}  // namespace pawl::supervise
