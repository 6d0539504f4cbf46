// SPDX-License-Identifier: Apache-2.0
// The control of worker_never_rests: to be removed is an end, too, also behind another state.
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
  static pawl::Next<pawl::Do<Switch>, pawl::Remove> next(Dimming, const Snapshot& now) {
    if (!now.observed.shines) return pawl::Remove{"it is burnt out"};
    return pawl::Do<Switch>{"it still shines"};
  }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
