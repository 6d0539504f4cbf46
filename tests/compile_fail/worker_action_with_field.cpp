// SPDX-License-Identifier: Apache-2.0
// An action is run again after failures and crashes; what it counts by itself would be lost.
// expect: an action has no fields: it runs again after failures and crashes
// expect: Lamp::Switch
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
  struct Switch {
    int attempts = 0;
    static pawl::Result<void> run(pawl::NoTools&, const LampDesired&, const pawl::ActionContext&) {
      return {};
    }
  };

  static pawl::Next<pawl::Go<On>> next(Off, const Snapshot&) { return pawl::Go<On>{"it is wanted"}; }
  static pawl::Next<pawl::Stay, pawl::Do<Switch>> next(On, const Snapshot&) {
    return pawl::Stay{"it shines"};
  }
  static pawl::Next<pawl::Go<Off>> stop(On, const Snapshot&) { return pawl::Go<Off>{"it is to stop"}; }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
