// SPDX-License-Identifier: Apache-2.0
// A worker that is to stop cannot begin anew instead.
// expect: a stopping worker must not answer Stay or Restart
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
  static pawl::Next<pawl::Restart, pawl::Go<Off>> stop(On, const Snapshot&) {
    return pawl::Go<Off>{"it is to stop"};
  }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
