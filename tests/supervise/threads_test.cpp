// SPDX-License-Identifier: Apache-2.0
// The supervisor on real threads: decisions on one, everything else on others. Run with the thread sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "pawl/supervisor.hpp"

using namespace std::chrono_literals;

namespace pawl::test {

struct LampObserved {
  bool lit = false;
};
struct LampDesired {
  int watts = 40;
};
struct LampTools {
  std::shared_ptr<std::atomic<bool>> lit = std::make_shared<std::atomic<bool>>(false);
};

struct Lamp : Worker<LampObserved, LampDesired, LampTools> {
  struct Dark : phase::Stopped {};
  struct Lighting : phase::Starting {};
  struct Lit : phase::Running {};
  struct Dimming : phase::Stopping {};
  using States = pawl::States<Dark, Lighting, Lit, Dimming>;
  struct On {
    static Result<void> run(LampTools& tools, const LampDesired&, const ActionContext&) {
      *tools.lit = true;
      return {};
    }
  };
  struct Off {
    static Result<void> run(LampTools& tools, const LampDesired&, const ActionContext&) {
      *tools.lit = false;
      return {};
    }
  };
  static Next<Go<Lighting>> next(Dark, const Snapshot&) { return Go<Lighting>{"it is wanted"}; }
  static Next<Go<Lit>, Do<On>> next(Lighting, const Snapshot& now) {
    if (now.observed.lit) return Go<Lit>{"it is lit"};
    return Do<On>{"it is dark"};
  }
  static Next<Stay, Go<Lighting>> next(Lit, const Snapshot& now) {
    if (!now.observed.lit) return Go<Lighting>{"it went dark"};
    return Stay{"it is lit"};
  }
  static Next<Go<Dark>, Do<Off>> next(Dimming, const Snapshot& now) {
    if (!now.observed.lit) return Go<Dark>{"it is dark"};
    return Do<Off>{"it is lit"};
  }
  template <class State>
  static Next<Go<Dimming>> stop(State, const Snapshot&) {
    return Go<Dimming>{"it is to stop"};
  }
  static Result<LampObserved> collect(LampTools& tools, const LampDesired&, const CollectContext&) {
    return LampObserved{*tools.lit};
  }
};

/// A directory of its own, that goes with it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_((std::filesystem::temp_directory_path() / "pawl_supervise_XXXXXX").string()) {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string store() const { return "sqlite:" + path_ + "/workers.db"; }

 private:
  std::string path_;
};

/// Asks until it is so; the supervisor's own clock is a real one here.
template <class F>
bool comes_true(Runtime& runtime, F holds) {
  for (int turns = 0; turns < 6000; ++turns) {
    if (holds()) return true;
    Gate never;
    runtime.wait(never, 10ms);
  }
  return false;
}

TEST(SupervisorThreads, ManyWorkersAreStartedParkedChangedAndRemovedByManyThreads) {
  const TemporaryDirectory directory;
  ThreadRuntime runtime;
  WorkerTypes types;
  types.add<Lamp>();
  Supervisor supervisor(runtime, std::move(types), {.tick = 10ms, .observe_every = 20ms});
  Machines machines;
  supervisor.add_machines(machines);
  auto engine = Engine::open(runtime, std::move(machines),
                             {.store = directory.store(), .pools = {{std::string(Supervisor::kPool), 8}}})
                    .value();
  supervisor.attach(*engine).value();
  TreeSpec tree;
  for (int i = 0; i < 40; ++i)
    tree.children.push_back({.name = "lamp-" + std::to_string(i), .worker_type = "lamp"});
  supervisor.apply(tree).value();
  auto count = [&](Phase phase) {
    std::size_t found = 0;
    for (const auto& lamp : supervisor.tree()) found += lamp.phase == phase ? 1U : 0U;
    return found;
  };
  ASSERT_TRUE(comes_true(runtime, [&] { return count(Phase::running) == 40; }));
  {
    std::vector<std::jthread> people;
    for (int person = 0; person < 4; ++person) {
      people.emplace_back([&supervisor, person] {
        for (int i = person; i < 40; i += 4) {
          const auto name = "lamp-" + std::to_string(i);
          (void)supervisor.park(name);
          (void)supervisor.show(name);
          (void)supervisor.upsert(
              {.name = name, .worker_type = "lamp", .user_spec = {.config = R"({"watts": 60})"}});
          (void)supervisor.restart(name, "a test");
          if (i % 2 == 0) {
            const auto removed = supervisor.remove(name);
            EXPECT_TRUE(removed) << removed.error().to_string();
            (void)supervisor.show(name);
            EXPECT_TRUE(supervisor.upsert({.name = name, .worker_type = "lamp"}));
          }
          (void)supervisor.stats();
        }
      });
    }
  }
  // Who was removed is there again, parked or made anew.
  ASSERT_TRUE(comes_true(runtime, [&] { return count(Phase::stopped) + count(Phase::running) == 40; }));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(supervisor.park("lamp-" + std::to_string(i)));
  ASSERT_TRUE(comes_true(runtime, [&] { return count(Phase::stopped) == 40; }));
  for (int i = 0; i < 40; ++i) supervisor.run("lamp-" + std::to_string(i)).value();
  ASSERT_TRUE(comes_true(runtime, [&] { return count(Phase::running) == 40; }));
  EXPECT_TRUE(supervisor.drain(60s).clean);
  supervisor.detach();
  engine.reset();
}

struct BusyObserved {};
struct BusyDesired {};
struct BusyTools {};

/// Counts its decisions.
struct Busy : Worker<BusyObserved, BusyDesired, BusyTools> {
  struct Off : phase::Stopped {};
  struct On : phase::Running {};
  using States = pawl::States<Off, On>;
  static inline std::atomic<int> decisions = 0;
  static Next<Go<On>> next(Off, const Snapshot&) { return Go<On>{"it is wanted"}; }
  static Next<Stay> next(On, const Snapshot&) {
    decisions.fetch_add(1, std::memory_order_relaxed);
    return Stay{"it is on"};
  }
  static Next<Go<Off>> stop(On, const Snapshot&) { return Go<Off>{"it is to stop"}; }
  static Result<BusyObserved> collect(BusyTools&, const BusyDesired&, const CollectContext&) {
    return BusyObserved{};
  }
};

TEST(SupervisorThreads, ASupervisorThatIsDetachedDuringATickLetsTheTickEnd) {
  const TemporaryDirectory directory;
  for (int round = 0; round < 30; ++round) {
    ThreadRuntime runtime;
    WorkerTypes types;
    types.add<Busy>();
    // Strict, so that each tick decides and sets the timer of the next one.
    Supervisor supervisor(runtime, std::move(types), {.tick = 1ms, .strict = true});
    Machines machines;
    supervisor.add_machines(machines);
    auto engine = Engine::open(runtime, std::move(machines),
                               {.store = directory.store(), .pools = {{std::string(Supervisor::kPool), 8}}})
                      .value();
    supervisor.attach(*engine).value();
    supervisor.apply({.children = {{.name = "busy", .worker_type = "busy"}}}).value();
    // Without order between the threads, as in a program that ends by itself: what the ticks read, and when,
    // is not known to this thread.
    const int enough = Busy::decisions.load(std::memory_order_relaxed) + 5;
    while (Busy::decisions.load(std::memory_order_relaxed) < enough) std::this_thread::yield();
    supervisor.detach();
    engine.reset();
  }
}

TEST(SupervisorThreads, TheEngineMayBeDestroyedFirstAndItsPoolNeedsNoOption) {
  const TemporaryDirectory directory;
  for (int round = 0; round < 10; ++round) {
    ThreadRuntime runtime;
    WorkerTypes types;
    types.add<Busy>();
    Supervisor supervisor(runtime, std::move(types), {.tick = 1ms, .strict = true, .actions = 3});
    Machines machines;
    supervisor.add_machines(machines);
    const auto engine = Engine::open(runtime, std::move(machines), {.store = directory.store()});
    ASSERT_TRUE(engine) << engine.error().to_string();
    const auto pools = (*engine)->pools();
    const auto pool = std::ranges::find(pools, Supervisor::kPool, &PoolStatus::name);
    ASSERT_NE(pool, pools.end());
    EXPECT_EQ(pool->size, 3);
    supervisor.attach(**engine).value();
    supervisor.apply({.children = {{.name = "busy", .worker_type = "busy"}}}).value();
    const int enough = Busy::decisions.load(std::memory_order_relaxed) + 5;
    while (Busy::decisions.load(std::memory_order_relaxed) < enough) std::this_thread::yield();
  }
}

TEST(SupervisorThreads, AnEngineThatIsDestroyedLeavesASupervisorAloneThatHasAnother) {
  const TemporaryDirectory first_place;
  const TemporaryDirectory second_place;
  ThreadRuntime runtime;
  WorkerTypes types;
  types.add<Busy>();
  Supervisor supervisor(runtime, std::move(types), {.tick = 1ms, .strict = true});
  Machines machines;
  supervisor.add_machines(machines);
  auto first = Engine::open(runtime, machines, {.store = first_place.store()}).value();
  supervisor.attach(*first).value();
  supervisor.detach();
  const auto second = Engine::open(runtime, machines, {.store = second_place.store()}).value();
  supervisor.attach(*second).value();
  first.reset();
  EXPECT_TRUE(supervisor.apply({.children = {{.name = "busy", .worker_type = "busy"}}}));
  EXPECT_TRUE(comes_true(runtime, [&] { return supervisor.show("busy").has_value(); }));
}

struct DeafObserved {};
struct DeafDesired {};
struct DeafTools {
  std::shared_ptr<std::atomic<bool>> let_go;
  std::shared_ptr<std::atomic<int>> inside;
};

/// Looks for ever, and does not listen.
struct Deaf : Worker<DeafObserved, DeafDesired, DeafTools> {
  struct Off : phase::Stopped {};
  struct On : phase::Running {};
  using States = pawl::States<Off, On>;
  static Next<Go<On>> next(Off, const Snapshot&) { return Go<On>{"it is wanted"}; }
  static Next<Stay> next(On, const Snapshot&) { return Stay{"it is on"}; }
  static Next<Go<Off>> stop(On, const Snapshot&) { return Go<Off>{"it is to stop"}; }
  static Result<DeafObserved> collect(DeafTools& tools, const DeafDesired&, const CollectContext&) {
    const auto let_go = tools.let_go;
    const auto inside = tools.inside;
    ++*inside;
    let_go->wait(false);
    --*inside;
    return DeafObserved{};
  }
};

TEST(SupervisorThreads, AThreadThatHangsIsLeftAloneWithWhatItUses) {
  const auto let_go = std::make_shared<std::atomic<bool>>(false);
  const auto inside = std::make_shared<std::atomic<int>>(0);
  const TemporaryDirectory directory;
  ThreadRuntime outer;
  {
    auto runtime = std::make_unique<ThreadRuntime>();
    WorkerTypes types;
    types.add<Deaf>([&](const WorkerIdentity&) { return DeafTools{let_go, inside}; });
    auto supervisor = std::make_unique<Supervisor>(*runtime, std::move(types),
                                                   SupervisorOptions{.collect_stop_within = 50ms});
    Machines machines;
    supervisor->add_machines(machines);
    auto engine = Engine::open(*runtime, std::move(machines),
                               {.store = directory.store(), .pools = {{std::string(Supervisor::kPool), 8}}})
                      .value();
    supervisor->attach(*engine).value();
    supervisor->apply({.children = {{.name = "deaf", .worker_type = "deaf"}}}).value();
    ASSERT_TRUE(comes_true(outer, [&] { return *inside == 1; }));
    supervisor->detach();
    engine.reset();
    supervisor.reset();
    runtime.reset();
  }
  EXPECT_EQ(*inside, 1);
  *let_go = true;
  let_go->notify_all();
  EXPECT_TRUE(comes_true(outer, [&] { return *inside == 0; }));
}

}  // namespace pawl::test
