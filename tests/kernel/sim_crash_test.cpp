// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "pawl/sim.hpp"

namespace {

using namespace std::chrono_literals;
using pawl::Code;
using pawl::Gate;
using pawl::sim::Crashed;
using pawl::sim::Process;
using pawl::sim::Simulation;

/// Calls everything a destructor might call, to see that it is harmless.
struct CallsWhenDestroyed {
  Process& node;
  pawl::Lane& lane;
  pawl::ThreadPool& workers;
  int& destroyed;

  ~CallsWhenDestroyed() {
    Gate never;
    lane.post([] { FAIL() << "a dead process ran a task"; });
    lane.after(1s, [] { FAIL() << "a dead process ran a timer"; });
    EXPECT_FALSE(node.wait(never));
    EXPECT_TRUE(node.fault("destructor"));  // nothing may be written any more
    const auto refused = workers.submit([](std::stop_token) { FAIL() << "a dead process ran a job"; });
    EXPECT_TRUE(!refused && refused.error().code() == Code::stopped);
    const auto opened = node.open_lane("late");
    opened->post([] { FAIL() << "a dead process ran a task of a late lane"; });
    (void)node.now();
    (void)node.random();
    ++destroyed;
  }
};

TEST(Crash, TasksTimersAndJobsThatHaveNotBegunVanish) {
  Simulation sim{{.job_delay_max = 1h}};
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  const auto workers = node.open_thread_pool("io", {});
  lane->post([] { FAIL() << "a dead process ran a task"; });
  lane->after(1s, [] { FAIL() << "a dead process ran a timer"; });
  ASSERT_TRUE(workers->submit([](std::stop_token) { FAIL() << "a dead process ran a job"; }));
  node.crash();
  EXPECT_TRUE(node.crashed());
  sim.run_until_idle();
  EXPECT_EQ(sim.elapsed(), 0s);
}

TEST(Crash, OtherProcessesGoOn) {
  Simulation sim;
  Process& a = sim.spawn("a");
  Process& b = sim.spawn("b");
  const auto lane = b.open_lane("lane");
  bool ran = false;
  lane->post([&] { ran = true; });
  a.crash();
  sim.run_until_idle();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(b.crashed());
}

TEST(Crash, AWaitingJobIsUnwoundAndItsDestructorsMayCallTheRuntime) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  const auto workers = node.open_thread_pool("io", {});
  Gate never;
  int destroyed = 0;
  ASSERT_TRUE(workers->submit([&](std::stop_token) {
    const CallsWhenDestroyed calls{node, *lane, *workers, destroyed};
    node.wait(never);
    FAIL() << "a job went on after the crash";
  }));
  sim.run_until_idle();
  node.crash();
  EXPECT_EQ(destroyed, 1);
  sim.run_until_idle();
}

TEST(Crash, AJobThatSwallowsTheCrashLeavesAtItsNextCall) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto workers = node.open_thread_pool("io", {});
  Gate never;
  int caught = 0;
  ASSERT_TRUE(workers->submit([&](std::stop_token) {
    try {
      node.wait(never);
    } catch (...) {
      ++caught;
    }
    try {
      (void)node.fault("after the crash");
    } catch (...) {
      ++caught;
    }
    node.wait(never);
    FAIL() << "a job went on after the crash";
  }));
  sim.run_until_idle();
  node.crash();
  EXPECT_EQ(caught, 2);
}

TEST(Crash, FromOutsideDestroyingThingsAfterwardsIsHarmless) {
  Simulation sim;
  Process& node = sim.spawn("node");
  int destroyed = 0;
  {
    const auto lane = node.open_lane("lane");
    const auto workers = node.open_thread_pool("io", {});
    const CallsWhenDestroyed calls{node, *lane, *workers, destroyed};
    lane->post([keep = std::make_unique<CallsWhenDestroyed>(node, *lane, *workers, destroyed)] {});
    node.crash();
    EXPECT_EQ(destroyed, 1);
  }
  EXPECT_EQ(destroyed, 2);
}

TEST(Crash, ByATaskOfTheProcessItselfDoesNotReturnToIt) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  lane->post([&] {
    node.crash();
    FAIL() << "a task went on after the crash";
  });
  lane->post([] { FAIL() << "a dead process ran a task"; });
  sim.run_until_idle();
  EXPECT_TRUE(node.crashed());
  EXPECT_EQ(sim.crashes(), 1U);
}

TEST(Crash, ByATaskOfAnotherProcessUnwindsJobsAtOnce) {
  Simulation sim;
  Process& killer = sim.spawn("killer");
  Process& victim = sim.spawn("victim");
  const auto lane = killer.open_lane("lane");
  const auto killer_jobs = killer.open_thread_pool("io", {});
  Gate never;
  int unwound = 0;
  struct Counts {
    int& count;
    ~Counts() { ++count; }
  };
  auto workers = victim.open_thread_pool("io", {});
  ASSERT_TRUE(workers->submit([&](std::stop_token) {
    const Counts counts{unwound};
    victim.wait(never);
  }));
  sim.run_until_idle();
  ASSERT_TRUE(killer_jobs->submit([&](std::stop_token) {
    victim.crash();
    EXPECT_EQ(unwound, 1);
    workers.reset();
  }));
  sim.run_until_idle();
  EXPECT_FALSE(killer.crashed());
  EXPECT_EQ(workers, nullptr);
}

TEST(Crash, WhileTheTestWaitsLeavesTheWait) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  Gate never;
  lane->after(1s, [&] { node.crash(); });
  EXPECT_THROW(node.wait(never), Crashed);
  EXPECT_FALSE(node.wait(never));  // afterwards harmless
}

TEST(Crash, AnAttemptSaysWhetherTheProcessLives) {
  Simulation sim;
  Process& node = sim.spawn("node");
  sim.arm("open", pawl::sim::crash_at_hit(2));
  const auto open = [&] { (void)node.fault("open"); };
  EXPECT_TRUE(node.attempt(open));
  EXPECT_FALSE(node.attempt(open));
  EXPECT_TRUE(node.crashed());
}

TEST(Crash, TheSuccessorBearsTheSameNameAndANumberInTheTrace) {
  Simulation sim;
  sim.spawn("node").crash();
  Process& next = sim.spawn("node");
  EXPECT_EQ(next.name(), "node");
  EXPECT_FALSE(next.crashed());
  EXPECT_EQ(sim.trace(), "0 0.000000 node starts\n0 0.000000 node crashes\n0 0.000000 node#2 starts\n");
}

TEST(Fault, PointsThatAreNotArmedPassAndAreCounted) {
  Simulation sim;
  Process& node = sim.spawn("node");
  EXPECT_EQ(sim.hits("store.commit"), 0U);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(node.fault("store.commit"));
  EXPECT_FALSE(node.fault("store.sync"));
  EXPECT_EQ(sim.hits("store.commit"), 3U);
  EXPECT_EQ(sim.hits(), 4U);
}

TEST(Fault, FailsAtTheNthHitAlone) {
  Simulation sim;
  Process& node = sim.spawn("node");
  sim.arm("store.commit", pawl::sim::fail_at_hit(2));
  EXPECT_FALSE(node.fault("store.commit"));
  EXPECT_TRUE(node.fault("store.commit"));
  EXPECT_FALSE(node.fault("store.commit"));
}

TEST(Fault, FailsWithAProbabilityUntilItIsDisarmed) {
  Simulation sim;
  Process& node = sim.spawn("node");
  sim.arm("send", pawl::sim::fail_with_ppm(250'000));
  int failed = 0;
  for (int i = 0; i < 4000; ++i) failed += node.fault("send") ? 1 : 0;
  EXPECT_NEAR(failed, 1000, 150);
  sim.disarm("send");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(node.fault("send"));
}

TEST(Fault, CrashesTheProcessOutOfTheTaskThatHitIt) {
  Simulation sim;
  Process& node = sim.spawn("node");
  sim.arm("store.commit", pawl::sim::crash_at_hit(2));
  const auto lane = node.open_lane("lane");
  std::vector<int> committed;
  for (int i = 1; i <= 3; ++i) {
    lane->post([&, i] {
      if (!node.fault("store.commit")) committed.push_back(i);
    });
  }
  sim.run_until_idle();
  EXPECT_EQ(committed, std::vector{1});
  EXPECT_TRUE(node.crashed());
}

TEST(Fault, CrashAtStopsAtEachHitInTurn) {
  const auto run = [](std::uint64_t crash_at) {
    Simulation sim{{.crash_at = crash_at}};
    Process& node = sim.spawn("node");
    const auto lane = node.open_lane("lane");
    int done = 0;
    lane->post([&] {
      for (const char* point : {"write", "sync", "answer"}) {
        (void)node.fault(point);
        ++done;
      }
    });
    sim.run_until_idle();
    return std::pair{done, sim.hits()};
  };
  EXPECT_EQ(run(0), std::pair(3, std::uint64_t{3}));
  EXPECT_EQ(run(1), std::pair(0, std::uint64_t{1}));
  EXPECT_EQ(run(2), std::pair(1, std::uint64_t{2}));
  EXPECT_EQ(run(3), std::pair(2, std::uint64_t{3}));
  EXPECT_EQ(run(4), std::pair(3, std::uint64_t{3}));
}

TEST(Fault, ArmingAPointDoesNotChangeTheSchedule) {
  const auto order = [](bool armed) {
    Simulation sim{{.seed = 5}};
    if (armed) sim.arm("point", pawl::sim::fail_with_ppm(500'000));
    Process& node = sim.spawn("node");
    const auto a = node.open_lane("a");
    const auto b = node.open_lane("b");
    std::string text;
    for (int i = 0; i < 20; ++i) {
      a->post([&] { (void)node.fault("point"), text += 'a'; });
      b->post([&] { (void)node.fault("point"), text += 'b'; });
    }
    sim.run_until_idle();
    return text;
  };
  EXPECT_EQ(order(true), order(false));
}

}  // namespace
