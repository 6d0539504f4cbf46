// SPDX-License-Identifier: Apache-2.0
// A worker is a small machine; what is larger is several workers.
// expect: a worker has at most 32 states
#include "pawl/worker.hpp"

template <int>
struct Level : pawl::phase::Running {};

struct LampObserved {
  bool shines = false;
};
struct LampDesired {
  int lumens = 100;
};

struct Lamp : pawl::Worker<LampObserved, LampDesired> {
  struct Off : pawl::phase::Stopped {};
  struct On : pawl::phase::Running {};
  using States =
      pawl::States<Off, On, Level<1>, Level<2>, Level<3>, Level<4>, Level<5>, Level<6>, Level<7>, Level<8>,
                   Level<9>, Level<10>, Level<11>, Level<12>, Level<13>, Level<14>, Level<15>, Level<16>,
                   Level<17>, Level<18>, Level<19>, Level<20>, Level<21>, Level<22>, Level<23>, Level<24>,
                   Level<25>, Level<26>, Level<27>, Level<28>, Level<29>, Level<30>, Level<31>>;

  static pawl::Next<pawl::Go<On>> next(Off, const Snapshot&) { return pawl::Go<On>{"it is wanted"}; }
  static pawl::Next<pawl::Stay> next(On, const Snapshot&) { return pawl::Stay{"it shines"}; }
  static pawl::Next<pawl::Go<Off>> stop(On, const Snapshot&) { return pawl::Go<Off>{"it is to stop"}; }
  static pawl::Result<LampObserved> collect(pawl::NoTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
static_assert(pawl::verified_worker<Lamp>);
