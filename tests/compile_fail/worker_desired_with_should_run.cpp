// SPDX-License-Identifier: Apache-2.0
// Whether a worker is to run is known to the supervisor alone; there must not be two answers.
// expect: Desired has no field that says whether to run \(should_run
// expect: LampDesired
#include "pawl/worker.hpp"

struct LampObserved {
  bool shines = false;
};
struct LampDesired {
  int lumens = 100;
  bool should_run = true;
};

struct Lamp : pawl::Worker<LampObserved, LampDesired> {
  struct Off : pawl::phase::Stopped {};
  struct On : pawl::phase::Running {};
  using States = pawl::States<Off, On>;

  static pawl::Next<pawl::Go<On>> next(Off, const Snapshot&) { return pawl::Go<On>{"it is wanted"}; }
  static pawl::Next<pawl::Stay> next(On, const Snapshot&) { return pawl::Stay{"it shines"}; }
  static pawl::Next<pawl::Go<Off>> stop(On, const Snapshot&) { return pawl::Go<Off>{"it is to stop"}; }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
