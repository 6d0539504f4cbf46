// SPDX-License-Identifier: Apache-2.0
// Stopping has a reason, too, and its ways are checked like all others.
// expect: every starting, running and degraded state has: static pawl::Next<…> stop\(State, const Snapshot&\)
// expect: Lamp::On
#include "pawl/worker.hpp"

struct LampObserved {
  bool shines = false;
};
struct LampDesired {
  int lumens = 100;
};

struct Lamp : pawl::Worker<LampObserved, LampDesired> {
  struct Off : pawl::phase::Stopped {};
  struct On : pawl::phase::Running {};
  using States = pawl::States<Off, On>;

  static pawl::Next<pawl::Go<On>> next(Off, const Snapshot&) { return pawl::Go<On>{"it is wanted"}; }
  static pawl::Next<pawl::Stay> next(On, const Snapshot&) { return pawl::Stay{"it shines"}; }
  static Off stop(On, const Snapshot&) { return {}; }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
