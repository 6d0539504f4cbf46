// SPDX-License-Identifier: Apache-2.0
// The oven is a worker: it is heated until it is as hot as desired, and heated again when it cools down.
#include <atomic>
#include <iostream>
#include <string>

#include "pawl/supervisor.hpp"

using namespace std::chrono_literals;

static std::atomic<int> thermometer = 20;  // stands for the real oven

struct OvenObserved {
  int celsius = 0;
};
struct OvenDesired {
  int celsius = 0;
};

// excerpt: worker
struct Oven : pawl::Worker<OvenObserved, OvenDesired> {
  struct Off : pawl::phase::Stopped {};
  struct Heating : pawl::phase::Starting {};
  struct Hot : pawl::phase::Running {};
  struct Cooling : pawl::phase::Stopping {};
  using States = pawl::States<Off, Heating, Hot, Cooling>;  // the first is initial

  struct Heat {  // an action is idempotent: after a crash it is run again
    static pawl::Result<void> run(Tools&, const Desired& desired, const pawl::ActionContext&) {
      thermometer = desired.celsius;
      return {};
    }
  };
  struct Ventilate {
    static pawl::Result<void> run(Tools&, const Desired&, const pawl::ActionContext&) {
      thermometer = 20;
      return {};
    }
  };

  // What a state may decide is its return type; the compiler makes the machine from these types and checks
  // it.
  static pawl::Next<pawl::Go<Heating>> next(Off, const Snapshot&) {
    return pawl::Go<Heating>{"it is desired"};
  }
  static pawl::Next<pawl::Go<Hot>, pawl::Do<Heat>> next(Heating, const Snapshot& now) {
    if (now.observed.celsius >= now.desired.celsius) return pawl::Go<Hot>{"it is hot"};
    return pawl::Do<Heat>{"it is too cold"};
  }
  static pawl::Next<pawl::Stay, pawl::Go<Heating>> next(Hot, const Snapshot& now) {
    if (now.observed.celsius < now.desired.celsius) return pawl::Go<Heating>{"it has cooled down"};
    return pawl::Stay{"it is hot"};
  }
  static pawl::Next<pawl::Go<Off>, pawl::Do<Ventilate>> next(Cooling, const Snapshot& now) {
    if (now.observed.celsius < 50) return pawl::Go<Off>{"it is cold"};
    return pawl::Do<Ventilate>{"it is hot"};
  }
  template <class State>
  static pawl::Next<pawl::Go<Cooling>> stop(State, const Snapshot&) {
    return pawl::Go<Cooling>{"it is not desired any more"};
  }

  static pawl::Result<Observed> collect(Tools&, const Desired&, const pawl::CollectContext&) {
    return Observed{.celsius = thermometer};
  }
};
static_assert(pawl::verified_worker<Oven>);
// excerpt end

// excerpt: run
/// Prints the oven's states until it is hot. Each worker is an instance, so the log has all its moves.
static pawl::Result<void> follow_until_hot(pawl::Subscription& log) {
  std::string state;
  while (state != "Hot") {
    PAWL_TRY(const auto entries, log.next(1min));
    if (entries.empty()) return pawl::fail(pawl::Code::timed_out, "the oven stays " + state);
    for (const auto& entry : entries) {
      if (entry.machine != "worker_oven" || entry.state == state) continue;
      state = entry.state;
      std::cout << state << '\n';
    }
  }
  return {};
}

static pawl::Result<void> bake_one_day(pawl::Supervisor& supervisor, pawl::Engine& engine) {
  PAWL_TRY(auto log, engine.subscribe(""));  // from now on
  PAWL_CHECK(supervisor.attach(engine));     // the workers of the last time go on
  PAWL_CHECK(supervisor.apply(
      {.children = {
           {.name = "oven", .worker_type = "oven", .user_spec = {.config = R"({"celsius": 230})"}}}}));
  PAWL_CHECK(follow_until_hot(log));
  std::cout << thermometer << " degrees\n";
  const auto drained = supervisor.drain();  // every worker comes to rest
  std::cout << (drained.clean ? "drained, " : "cut off, ") << thermometer << " degrees\n";
  return {};
}

static pawl::Result<void> run() {
  pawl::ThreadRuntime runtime;
  pawl::WorkerTypes types;
  types.add<Oven>();
  pawl::Supervisor supervisor(runtime, std::move(types), {.observe_every = 100ms});
  pawl::Machines machines;
  supervisor.add_machines(machines);
  PAWL_TRY(const auto engine, pawl::Engine::open(runtime, std::move(machines),
                                                 {.store = "sqlite:ovens.db",
                                                  .pools = {{std::string(pawl::Supervisor::kPool), 8}}}));
  auto done = bake_one_day(supervisor, *engine);
  supervisor.detach();
  return done;
}
// excerpt end

int main() {
  if (const auto done = run(); !done) {
    std::cerr << done.error().to_string() << '\n';
    return 1;
  }
}

// prints: Off
// prints: Heating
// prints: Hot
// prints: 230 degrees
// prints: drained, 20 degrees
