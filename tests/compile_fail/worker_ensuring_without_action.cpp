// SPDX-License-Identifier: Apache-2.0
// A state whose name says that it ensures something does something.
// expect: a state called TryingTo… or Ensuring… has a Do<Action> in its next
// expect: Lamp::EnsuringPower
#include "pawl/worker.hpp"

struct LampObserved {
  bool shines = false;
};
struct LampDesired {
  int lumens = 100;
};

struct Lamp : pawl::Worker<LampObserved, LampDesired> {
  struct Off : pawl::phase::Stopped {};
  struct EnsuringPower : pawl::phase::Starting {};
  struct On : pawl::phase::Running {};
  using States = pawl::States<Off, EnsuringPower, On>;

  static pawl::Next<pawl::Go<EnsuringPower>> next(Off, const Snapshot&) {
    return pawl::Go<EnsuringPower>{"it is wanted"};
  }
  static pawl::Next<pawl::Go<On>> next(EnsuringPower, const Snapshot&) { return pawl::Go<On>{"it shines"}; }
  static pawl::Next<pawl::Stay> next(On, const Snapshot&) { return pawl::Stay{"it shines"}; }
  template <class State>
  static pawl::Next<pawl::Go<Off>> stop(State, const Snapshot&) {
    return pawl::Go<Off>{"it is to stop"};
  }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
