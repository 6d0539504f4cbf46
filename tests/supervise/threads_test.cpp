// SPDX-License-Identifier: Apache-2.0
// The supervisor on real threads: decisions on one, everything else on others. Run with the thread sanitizer.
#include <gtest/gtest.h>

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
  auto directory = (std::filesystem::temp_directory_path() / "pawl_supervise_threads_XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  ThreadRuntime runtime;
  WorkerTypes types;
  types.add<Lamp>();
  Supervisor supervisor(runtime, std::move(types), {.tick = 10ms, .observe_every = 20ms});
  Machines machines;
  supervisor.add_machines(machines);
  auto engine = Engine::open(runtime, std::move(machines),
                             {.store = "sqlite:" + directory + "/lamps.db",
                              .pools = {{std::string(Supervisor::kPool), 8}}})
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
          (void)supervisor.stats();
        }
      });
    }
  }
  ASSERT_TRUE(comes_true(runtime, [&] { return count(Phase::stopped) == 40; }));
  for (int i = 0; i < 40; ++i) supervisor.run("lamp-" + std::to_string(i)).value();
  ASSERT_TRUE(comes_true(runtime, [&] { return count(Phase::running) == 40; }));
  EXPECT_TRUE(supervisor.drain(60s).clean);
  supervisor.detach();
  engine.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace pawl::test
