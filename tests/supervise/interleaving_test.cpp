// SPDX-License-Identifier: Apache-2.0
// What happens between two steps of somebody else: before the supervisor is attached, and while a caller has
// not yet said what it has stored.
#include <gtest/gtest.h>

#include "pawl/sim_disk.hpp"
#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

/// Another runtime that can hold back whoever has just waited.
class HoldingRuntime final : public Runtime {
 public:
  explicit HoldingRuntime(Runtime& inner) : inner_(inner) {}

  Time now() override { return inner_.now(); }
  Instant instant() override { return inner_.instant(); }
  std::uint64_t random() override { return inner_.random(); }
  std::unique_ptr<Lane> open_lane(std::string name) override { return inner_.open_lane(std::move(name)); }
  std::unique_ptr<ThreadPool> open_thread_pool(std::string name, ThreadPool::Options options) override {
    return inner_.open_thread_pool(std::move(name), options);
  }
  bool fault(std::string_view point) override { return inner_.fault(point); }
  bool wait(Gate& gate, std::optional<Duration> timeout) override {
    const bool opened = inner_.wait(gate, timeout);
    if (hold_when && hold_when()) {
      hold_when = nullptr;
      held = true;
      inner_.wait(go_on);
    }
    return opened;
  }

  std::function<bool()> hold_when;  ///< asked after each wait, until it says yes
  bool held = false;
  Gate go_on;

 private:
  Runtime& inner_;
};

/// A program with lifts that is put together step by step.
class StepwiseWorld {
 public:
  ~StepwiseWorld() {
    lab.never->open();
    stop();
  }

  /// The engine runs, the supervisor is not attached yet.
  void start() {
    process = &sim.spawn("node");
    runtime = std::make_unique<HoldingRuntime>(*process);
    WorkerTypes types;
    types.add(lift_type(lab, *process, "lift"));
    supervisor = std::make_unique<Supervisor>(*runtime, std::move(types), SupervisorOptions{});
    Machines machines;
    supervisor->add_machines(machines);
    engine = Engine::open(*runtime, std::move(machines),
                          {.store = "sqlite:tree.db",
                           .vfs = disk.vfs_name(),
                           .pools = {{std::string(Supervisor::kPool), 3}}})
                 .value();
  }
  void crash() {
    process->crash();
    stop();
    disk.process_kill();
  }

  WorkerData stored(const std::string& path) {
    return decode<WorkerData>(engine->read("worker_lift", path).value().data).value();
  }
  std::string state(const std::string& path) { return supervisor->show(path).value_or(WorkerView{}).state; }

  sim::Simulation sim;
  sim::Disk disk{1};
  Lab lab;
  sim::Process* process = nullptr;
  std::unique_ptr<HoldingRuntime> runtime;
  std::unique_ptr<Supervisor> supervisor;
  std::unique_ptr<Engine> engine;

 private:
  void stop() {
    if (supervisor) supervisor->detach();
    engine.reset();
    supervisor.reset();
  }
};

TEST(Interleaving, AStopOfOneActionBeforeTheSupervisorIsAttachedLetsNoOtherBegin) {
  StepwiseWorld world;
  world.start();
  world.supervisor->attach(*world.engine).value();
  for (const auto* path : {"a", "b"}) world.lab.sites[path].takes = 10s;
  world.supervisor->apply({.children = {lift("a"), lift("b")}}).value();
  world.sim.run_until([&] { return world.lab.sites["a"].raising + world.lab.sites["b"].raising == 2; });
  world.crash();
  for (const auto* path : {"a", "b"}) world.lab.sites[path].takes = 0s;

  world.start();
  world.sim.run_for(1s);  // both actions are handed out again, and wait for the supervisor
  world.engine
      ->commit(Transaction{}.operation({.machine = "worker_lift",
                                        .key = "a",
                                        .event = std::string(type_name<worker_event::Interrupted>()),
                                        .json = "{}"}))
      .value();
  world.sim.run_for(1s);
  EXPECT_FALSE(world.stored("a").order.has_value());
  EXPECT_TRUE(world.stored("b").order.has_value()) << "it has ended: " << world.stored("b").trouble->error;

  world.supervisor->attach(*world.engine).value();
  world.sim.run_for(10s);
  EXPECT_EQ(world.state("a"), "Up");
  EXPECT_EQ(world.state("b"), "Up");
  EXPECT_EQ(world.lab.sites["b"].raises, 2) << "once before the crash, once after it";
}

TEST(Interleaving, AnOlderStepThatArrivesAfterANewerOneChangesNothing) {
  StepwiseWorld world;
  world.start();
  world.supervisor->attach(*world.engine).value();
  world.supervisor->apply({.children = {lift("a")}}).value();
  world.sim.run_for(10s);
  ASSERT_EQ(world.state("a"), "Up");

  // Somebody parks it, and is held up between the commit and telling the supervisor.
  const auto people = world.process->open_thread_pool("people", {.threads = 1, .queue = 1});
  bool parked = false;
  world.runtime->hold_when = [&] { return world.stored("a").asked == Intent::park; };
  ASSERT_TRUE(people->submit([&](std::stop_token) { parked = world.supervisor->park("a").has_value(); }));
  world.sim.run_until([&] { return world.runtime->held; });
  world.supervisor->run("a").value();
  world.runtime->go_on.open();
  world.sim.run_until([&] { return parked; });

  EXPECT_EQ(world.supervisor->show("a").value().intent, Intent::run);
  world.sim.run_for(10s);
  EXPECT_EQ(world.state("a"), "Up");
  EXPECT_EQ(world.lab.sites["a"].lowers, 0);
}

}  // namespace
}  // namespace pawl::test
