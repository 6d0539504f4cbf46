// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "pawl/sim.hpp"

namespace {

using namespace std::chrono_literals;
using pawl::Code;
using pawl::Gate;
using pawl::sim::Process;
using pawl::sim::Simulation;
using pawl::sim::Stuck;

TEST(SimThreadPool, AJobWaitsWhileOthersRun) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  const auto workers = node.open_thread_pool("io", {.threads = 1});
  Gate gate;
  std::string order;
  ASSERT_TRUE(workers->submit([&](std::stop_token) {
    order += "begins ";
    EXPECT_TRUE(node.wait(gate));
    order += "ends";
  }));
  lane->after(5s, [&] { order += "opens ", gate.open(); });
  sim.run_until_idle();
  EXPECT_EQ(order, "begins opens ends");
  EXPECT_EQ(sim.elapsed(), 5s);
}

TEST(SimThreadPool, AWaitWithATimeoutEndsAtItsVirtualTime) {
  Simulation sim;
  Process& node = sim.spawn("node");
  Gate never;
  const auto workers = node.open_thread_pool("io", {});
  ASSERT_TRUE(workers->submit([&](std::stop_token) {
    EXPECT_FALSE(node.wait(never, 3h));
    EXPECT_EQ(sim.elapsed(), 3h);
  }));
  sim.run_until_idle();
  EXPECT_EQ(sim.elapsed(), 3h);
}

TEST(SimThreadPool, RunNoMoreJobsAtATimeThanTheyHaveThreads) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Simulation sim{{.seed = seed}};
    Process& node = sim.spawn("node");
    Gate never;
    int running = 0;
    int most = 0;
    const auto workers = node.open_thread_pool("io", {.threads = 3});
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(workers->submit([&](std::stop_token) {
        most = std::max(most, ++running);
        node.wait(never, 1s);
        --running;
      }));
    }
    sim.run_until_idle();
    EXPECT_EQ(most, 3);
    EXPECT_EQ(sim.elapsed(), 4s);  // ten jobs of a second on three threads
  }
}

TEST(SimThreadPool, RefuseTheJobBeyondTheQueue) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto workers = node.open_thread_pool("io", {.threads = 1, .queue = 1});
  ASSERT_TRUE(workers->submit([](std::stop_token) {}));
  ASSERT_TRUE(workers->submit([](std::stop_token) {}));
  const auto refused = workers->submit([](std::stop_token) { FAIL() << "a refused job ran"; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::overloaded);
  sim.run_until_idle();
  EXPECT_TRUE(workers->submit([](std::stop_token) {}));
}

TEST(SimThreadPool, OneThreadKeepsTheOrderOfJobsEvenWhenTheyAreDelayed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Simulation sim{{.seed = seed, .job_delay_max = 1s}};
    Process& node = sim.spawn("node");
    std::vector<int> order;
    const auto workers = node.open_thread_pool("io", {.threads = 1});
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(workers->submit([&order, i](std::stop_token) { order.push_back(i); }));
    }
    sim.run_until_idle();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST(SimThreadPool, SeveralThreadsReorderDelayedJobs) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Simulation sim{{.seed = seed, .job_delay_max = 1s}};
    Process& node = sim.spawn("node");
    std::string order;
    const auto workers = node.open_thread_pool("io", {.threads = 3});
    for (const char name : {'a', 'b', 'c'}) {
      ASSERT_TRUE(workers->submit([&order, name](std::stop_token) { order += name; }));
    }
    sim.run_until_idle();
    EXPECT_LE(sim.elapsed(), 1s);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6U);
}

TEST(SimThreadPool, AFaultPointInAJobLetsOthersRunFirst) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Simulation sim{{.seed = seed}};
    Process& node = sim.spawn("node");
    std::string order;
    const auto workers = node.open_thread_pool("io", {.threads = 2});
    for (const char name : {'a', 'b'}) {
      ASSERT_TRUE(workers->submit([&, name](std::stop_token) {
        order += name;
        EXPECT_FALSE(node.fault("between"));
        order += name;
      }));
    }
    sim.run_until_idle();
    orders.insert(order);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"aabb", "abab", "abba", "baab", "baba", "bbaa"}));
}

TEST(SimThreadPool, DestroyingThemStopsJobsThatRunAndDropsTheRest) {
  Simulation sim;
  Process& node = sim.spawn("node");
  bool finished = false;
  bool refused = false;
  auto workers = node.open_thread_pool("io", {.threads = 1});
  ASSERT_TRUE(workers->submit([&, pool = workers.get()](std::stop_token stop) {
    Gate asked;
    const std::stop_callback callback(stop, [&] { asked.open(); });
    node.wait(asked);
    const auto late = pool->submit([](std::stop_token) {});
    refused = !late && late.error().code() == Code::stopped;
    finished = true;
  }));
  ASSERT_TRUE(workers->submit([](std::stop_token) { FAIL() << "a dropped job ran"; }));
  sim.run_until_idle();
  workers.reset();
  EXPECT_TRUE(finished);
  EXPECT_TRUE(refused);
}

TEST(SimThreadPool, MayBeDestroyedByALaneTaskAndByAJobOfOthers) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  const auto outer = node.open_thread_pool("outer", {});
  int ended = 0;
  const auto open_busy = [&] {
    auto workers = node.open_thread_pool("inner", {});
    EXPECT_TRUE(workers->submit([&](std::stop_token stop) {
      Gate asked;
      const std::stop_callback callback(stop, [&] { asked.open(); });
      node.wait(asked);
      node.wait(asked, 1s);
      ++ended;
    }));
    return workers;
  };
  auto first = open_busy();
  auto second = open_busy();
  sim.run_until_idle();
  lane->post([&] {
    first.reset();
    EXPECT_EQ(ended, 1);
  });
  sim.run_until_idle();
  ASSERT_TRUE(outer->submit([&](std::stop_token) {
    second.reset();
    EXPECT_EQ(ended, 2);
  }));
  sim.run_until_idle();
  EXPECT_EQ(ended, 2);
}

TEST(SimThreadPool, AnExceptionOfAJobComesOutOfTheRun) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto workers = node.open_thread_pool("io", {});
  ASSERT_TRUE(workers->submit([](std::stop_token) { throw std::runtime_error("broken"); }));
  EXPECT_THROW(sim.run_until_idle(), std::runtime_error);
}

TEST(SimWait, FromOutsideRunsTheSimulationUntilTheGateIsOpen) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  Gate gate;
  bool later = false;
  lane->after(2s, [&] { gate.open(); });
  lane->after(3s, [&] { later = true; });
  EXPECT_TRUE(node.wait(gate));
  EXPECT_EQ(sim.elapsed(), 2s);
  EXPECT_FALSE(later);
}

TEST(SimWait, FromOutsideWithATimeoutEndsAtItsVirtualTime) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  Gate gate;
  lane->after(2s, [&] { gate.open(); });
  EXPECT_FALSE(node.wait(gate, 1500ms));
  EXPECT_EQ(sim.elapsed(), 1500ms);
  EXPECT_TRUE(node.wait(gate, 1h));
  EXPECT_EQ(sim.elapsed(), 2s);
}

TEST(SimWait, FromOutsideFollowsAClockThatBeginsToDrift) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  Gate never;
  lane->after(1s, [&] { node.set_drift_ppm(-500'000); });
  EXPECT_FALSE(node.wait(never, 2s));
  EXPECT_EQ(sim.elapsed(), 3s);
}

TEST(SimWait, ThatCanNeverEndIsADeadlockWhichNamesTheWaitingJobs) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto workers = node.open_thread_pool("io", {});
  Gate never;
  ASSERT_TRUE(workers->submit([&](std::stop_token) { node.wait(never); }));
  try {
    node.wait(never);
    FAIL() << "a closed gate let the test pass";
  } catch (const Stuck& stuck) {
    const std::string text = stuck.what();
    EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
    EXPECT_NE(text.find("node/io job 1 waits for a gate"), std::string::npos) << text;
    EXPECT_NE(text.find("node/io job 1 begins"), std::string::npos) << text;
  }
}

TEST(SimWait, WorkersThatCannotBeDestroyedFailTheNextRun) {
  Simulation sim;
  Process& node = sim.spawn("node");
  Gate never;
  auto workers = node.open_thread_pool("io", {});
  ASSERT_TRUE(workers->submit([&](std::stop_token) { node.wait(never); }));  // takes no notice of the stop
  sim.run_until_idle();
  workers.reset();
  EXPECT_THROW(sim.run_until_idle(), Stuck);
}

TEST(SimWaitDeathTest, AFailureThatNoRunHasShownEndsTheTest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Simulation sim;
        Process& node = sim.spawn("node");
        Gate never;
        const auto workers = node.open_thread_pool("io", {});
        (void)workers->submit([&](std::stop_token) { node.wait(never); });
        sim.run_until_idle();
      },
      "a task failed while workers were destroyed, seed 1");
}

}  // namespace
