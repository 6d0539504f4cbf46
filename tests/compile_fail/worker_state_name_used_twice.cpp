// SPDX-License-Identifier: Apache-2.0
// Names of states are read without regard to case, so these two are the same.
// expect: a state, or one of the same name, is listed twice
// expect: Lamp::(On|ON)
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
  struct ON : pawl::phase::Degraded {};
  using States = pawl::States<Off, On, ON>;

  static pawl::Next<pawl::Go<On>> next(Off, const Snapshot&) { return pawl::Go<On>{"it is wanted"}; }
  static pawl::Next<pawl::Go<ON>> next(On, const Snapshot&) { return pawl::Go<ON>{"it flickers"}; }
  static pawl::Next<pawl::Stay> next(ON, const Snapshot&) { return pawl::Stay{"it shines"}; }
  template <class State>
  static pawl::Next<pawl::Go<Off>> stop(State, const Snapshot&) {
    return pawl::Go<Off>{"it is to stop"};
  }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
