// SPDX-License-Identifier: Apache-2.0
// A worker with everything that is optional, registered.
#include "pawl/worker_types.hpp"

struct LampTools {
  int* wire;
};

struct LampObserved {
  bool shines = false;
};
struct LampDesired {
  int lumens = 100;
};

struct Lamp : pawl::Worker<LampObserved, LampDesired, LampTools> {
  static constexpr std::string_view kType = "desk_lamp";
  static constexpr pawl::Duration kObserveEvery = std::chrono::seconds(5);
  struct Off : pawl::phase::Stopped {};
  struct On : pawl::phase::Running {};
  using States = pawl::States<Off, On>;
  struct Switch {
    static constexpr pawl::Duration kTimeout = std::chrono::minutes(5);
    static constexpr pawl::RetryPolicy kBackoff{.retries = 3};
    static pawl::Result<void> run(LampTools&, const LampDesired&, const pawl::ActionContext&) { return {}; }
  };

  static pawl::Next<pawl::Go<On>> next(Off, const Snapshot&) { return pawl::Go<On>{"it is wanted"}; }
  static pawl::Next<pawl::Stay, pawl::Do<Switch>> next(On, const Snapshot&) {
    return pawl::Stay{"it shines"};
  }
  static pawl::Next<pawl::Go<Off>> stop(On, const Snapshot&) { return pawl::Go<Off>{"it is to stop"}; }
  static pawl::Result<LampDesired> derive(LampDesired read) { return read; }
  static pawl::Result<std::vector<pawl::ChildSpec>> children(const LampDesired&, const pawl::UserSpec&) {
    return std::vector<pawl::ChildSpec>{};
  }
  static pawl::Result<LampObserved> collect(LampTools&, const LampDesired&, const pawl::CollectContext&) {
    return LampObserved{};
  }
};
void add(pawl::WorkerTypes& types, int& wire) {
  types.add<Lamp>([&](const pawl::WorkerIdentity&) { return LampTools{&wire}; });
}
