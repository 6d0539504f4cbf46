// SPDX-License-Identifier: Apache-2.0
// What a state may lead to is written in what next returns; a bare state says neither that nor why.
// expect: every state has: static pawl::Next<…> next\(State, const Snapshot&\)
// expect: Lamp::Off
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

  static On next(Off, const Snapshot&) { return {}; }
  static pawl::Next<pawl::Stay> next(On, const Snapshot&) { return pawl::Stay{"it shines"}; }
  static pawl::Next<pawl::Go<Off>> stop(On, const Snapshot&) { return pawl::Go<Off>{"it is to stop"}; }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
