// SPDX-License-Identifier: Apache-2.0
// One stop for all states, which is also offered to those that are never asked.
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
  struct Flickering : pawl::phase::Degraded {};
  using States = pawl::States<Off, On, Flickering, Dimming>;
  struct Switch {
    static pawl::Result<void> run(pawl::NoTools&, const LampDesired&, const pawl::ActionContext&) {
      return {};
    }
  };

  static pawl::Next<pawl::Go<On>> next(Off, const Snapshot&) { return pawl::Go<On>{"it is wanted"}; }
  static pawl::Next<pawl::Stay, pawl::Go<Flickering>> next(On, const Snapshot& now) {
    if (!now.observed.shines) return pawl::Go<Flickering>{"it went out"};
    return pawl::Stay{"it shines"};
  }
  static pawl::Next<pawl::Do<Switch>, pawl::Go<On>> next(Flickering, const Snapshot& now) {
    if (now.observed.shines) return pawl::Go<On>{"it shines again"};
    return pawl::Do<Switch>{"it is dark"};
  }
  template <class State>
  static pawl::Next<pawl::Go<Dimming>> stop(State, const Snapshot&) {
    return pawl::Go<Dimming>{"it is to stop"};
  }
  static pawl::Next<pawl::Go<Off>, pawl::Do<Switch>> next(Dimming, const Snapshot& now) {
    if (!now.observed.shines) return pawl::Go<Off>{"it is dark"};
    return pawl::Do<Switch>{"it still shines"};
  }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
