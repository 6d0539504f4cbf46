// SPDX-License-Identifier: Apache-2.0
// A worker that stays while it stops would never stop.
// expect: a stopping worker must not answer Stay
// expect: Lamp::Dimming
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
  struct Dimming : pawl::phase::Stopping {};
  using States = pawl::States<Off, On, Dimming>;
  struct Switch {
    static pawl::Result<void> run(pawl::NoTools&, const LampDesired&, const pawl::ActionContext&) {
      return {};
    }
  };

  static pawl::Next<pawl::Go<On>> next(Off, const Snapshot&) { return pawl::Go<On>{"it is wanted"}; }
  static pawl::Next<pawl::Stay> next(On, const Snapshot&) { return pawl::Stay{"it shines"}; }
  static pawl::Next<pawl::Go<Dimming>> stop(On, const Snapshot&) {
    return pawl::Go<Dimming>{"it is to stop"};
  }
  static pawl::Next<pawl::Stay, pawl::Go<Off>, pawl::Do<Switch>> next(Dimming, const Snapshot& now) {
    if (!now.observed.shines) return pawl::Go<Off>{"it is dark"};
    return pawl::Do<Switch>{"it still shines"};
  }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
