// SPDX-License-Identifier: Apache-2.0
// Another state and an action at once cannot be written: in which state would the action end?
// expect: could not convert .* to .*Next<pawl::Go<Lamp::Off>, pawl::Do<Lamp::Switch>|no matching constructor
// for initialization of .*Next<pawl::Go<Off>, pawl::Do<Switch>>
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
  static pawl::Next<pawl::Go<Off>, pawl::Do<Switch>> next(Dimming, const Snapshot&) {
    return {pawl::Go<Off>{"it is dark"}, pawl::Do<Switch>{"it still shines"}};
  }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
