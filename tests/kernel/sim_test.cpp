// SPDX-License-Identifier: Apache-2.0
#include "pawl/sim.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace {

using namespace std::chrono_literals;
using pawl::Gate;
using pawl::sim::Process;
using pawl::sim::Simulation;
using pawl::sim::Stuck;

/// The order in which two tasks on different lanes ran.
std::string order_of_two_lanes(std::uint64_t seed) {
  Simulation sim{{.seed = seed}};
  Process& node = sim.spawn("node");
  const auto a = node.open_lane("a");
  const auto b = node.open_lane("b");
  std::string order;
  a->post([&] { order += 'a'; });
  b->post([&] { order += 'b'; });
  sim.run_until_idle();
  return order;
}

TEST(SimLane, KeepsTheOrderOfItsTasksWithEverySeed) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Simulation sim{{.seed = seed}};
    Process& node = sim.spawn("node");
    const auto a = node.open_lane("a");
    const auto b = node.open_lane("b");
    std::vector<int> order;
    for (int i = 0; i < 20; ++i) {
      a->post([&order, i] { order.push_back(i); });
      b->post([] {});
    }
    sim.run_until_idle();
    ASSERT_EQ(order.size(), 20U);
    EXPECT_TRUE(std::ranges::is_sorted(order));
  }
}

TEST(SimLane, TasksOfTwoLanesComeInAnyOrder) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) orders.insert(order_of_two_lanes(seed));
  EXPECT_EQ(orders, (std::set<std::string>{"ab", "ba"}));
}

TEST(SimLane, RunsTimersAtTheirVirtualTimeInOrder) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  std::vector<pawl::Duration> ran;
  const auto record = [&] { ran.push_back(sim.elapsed()); };
  lane->after(24h, record);
  lane->after(1ms, record);
  lane->after(0ms, record);
  lane->after(-5s, record);
  sim.run_until_idle();
  EXPECT_EQ(ran, (std::vector<pawl::Duration>{0ms, 0ms, 1ms, 24h}));
}

TEST(SimLane, ACancelledTimerDoesNotRunAndDoesNotMoveTime) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  const auto timer = lane->after(1h, [] { FAIL() << "a cancelled timer ran"; });
  EXPECT_TRUE(lane->cancel(timer));
  EXPECT_FALSE(lane->cancel(timer));
  sim.run_until_idle();
  EXPECT_EQ(sim.elapsed(), 0ms);
}

TEST(SimLane, DestroyingItDropsItsTasks) {
  Simulation sim;
  Process& node = sim.spawn("node");
  auto lane = node.open_lane("lane");
  lane->post([] { FAIL() << "a dropped task ran"; });
  lane->after(1s, [] { FAIL() << "a dropped timer ran"; });
  lane.reset();
  sim.run_until_idle();
  EXPECT_EQ(sim.elapsed(), 0ms);
}

TEST(SimLaneDeathTest, ATaskMustNotWait) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  Gate gate;
  lane->post([&] { node.wait(gate); });
  EXPECT_DEATH(sim.run_until_idle(), "a lane task does not wait");
}

TEST(Simulation, TimeStandsStillWhileAnythingCanRun) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  const auto other = node.open_lane("other");
  other->after(1us, [&] { EXPECT_EQ(sim.elapsed(), 1us); });
  int left = 100;
  std::function<void()> again = [&] {
    EXPECT_EQ(sim.elapsed(), 0us);
    if (--left > 0) lane->post([&] { again(); });
  };
  lane->post([&] { again(); });
  sim.run_until_idle();
  EXPECT_EQ(left, 0);
  EXPECT_EQ(sim.elapsed(), 1us);
}

TEST(Simulation, RunForEndsExactlyThereAndLeavesTheRest) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  int beats = 0;
  std::function<void()> beat = [&] { ++beats, lane->after(10s, [&] { beat(); }); };
  lane->after(10s, [&] { beat(); });
  sim.run_for(35s);
  EXPECT_EQ(beats, 3);
  EXPECT_EQ(sim.elapsed(), 35s);
  sim.run_for(5s);
  EXPECT_EQ(beats, 4);
}

TEST(Simulation, RunForNoTimeRunsWhatCanRunNow) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  bool now = false;
  bool later = false;
  lane->post([&] { now = true; });
  lane->after(1us, [&] { later = true; });
  sim.run_for(0us);
  EXPECT_TRUE(now);
  EXPECT_FALSE(later);
}

TEST(Simulation, StepDoesOneThingAndSaysWhenThereIsNone) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  int ran = 0;
  lane->post([&] { ++ran; });
  lane->post([&] { ++ran; });
  EXPECT_TRUE(sim.step());
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(sim.step());
  EXPECT_EQ(ran, 2);
  EXPECT_FALSE(sim.step());
}

TEST(Simulation, RunUntilStopsWhenTheConditionHolds) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  int ran = 0;
  for (int i = 0; i < 10; ++i) lane->post([&] { ++ran; });
  sim.run_until([&] { return ran == 4; });
  EXPECT_EQ(ran, 4);
}

TEST(Simulation, RunUntilFailsWhenNothingIsLeftToDo) {
  Simulation sim;
  EXPECT_THROW(sim.run_until([] { return false; }), Stuck);
}

TEST(Simulation, ALivelockFailsWithTheEndOfTheTrace) {
  Simulation sim{{.step_limit = 500}};
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("spinner");
  std::function<void()> again = [&] { lane->post([&] { again(); }); };
  lane->post([&] { again(); });
  try {
    sim.run_until_idle();
    FAIL() << "a livelock came to rest";
  } catch (const Stuck& stuck) {
    EXPECT_NE(std::string(stuck.what()).find("node/spinner task 500"), std::string::npos) << stuck.what();
    EXPECT_NE(stuck.reason().find("500 steps"), std::string::npos);
  }
}

TEST(Simulation, AnExceptionOfATaskComesOutOfTheRun) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  lane->post([] { throw std::runtime_error("broken"); });
  EXPECT_THROW(sim.run_until_idle(), std::runtime_error);
  EXPECT_TRUE(node.crashed());  // so that everything can be destroyed without running further
}

TEST(Simulation, RequireThrowsTheSentenceThatDoesNotHold) {
  Simulation sim;
  sim.require(true, "fine");
  try {
    sim.require(false, "two owners");
    FAIL() << "require let a violation pass";
  } catch (const pawl::sim::Violation& violation) {
    EXPECT_STREQ(violation.what(), "two owners");
  }
}

TEST(SimClock, BeginsAtTheSameTimeEveryDay) {
  Simulation sim;
  EXPECT_EQ(sim.spawn("node").now(), std::chrono::sys_days{std::chrono::year{2030} / 1 / 1});
}

TEST(SimClock, AJumpMovesTheWallClockOfThatProcessAlone) {
  Simulation sim;
  Process& a = sim.spawn("a");
  Process& b = sim.spawn("b");
  const auto instant = a.instant();
  sim.run_for(10s);
  a.jump_clock(-1h);
  EXPECT_EQ(a.now(), pawl::sim::kEpoch + 10s - 1h);
  EXPECT_EQ(b.now(), pawl::sim::kEpoch + 10s);
  EXPECT_EQ(a.instant() - instant, 10s);
}

TEST(SimClock, AJumpDoesNotMoveTimers) {
  Simulation sim;
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  lane->after(1min, [] {});
  node.jump_clock(2h);
  sim.run_until_idle();
  EXPECT_EQ(sim.elapsed(), 1min);
}

TEST(SimClock, DriftBendsBothClocksFromNowOn) {
  Simulation sim;
  Process& fast = sim.spawn("fast");
  Process& slow = sim.spawn("slow");
  sim.run_for(1000s);
  const auto instant = fast.instant();
  fast.set_drift_ppm(200);
  slow.set_drift_ppm(-200);
  sim.run_for(1000s);
  EXPECT_EQ(fast.now(), pawl::sim::kEpoch + 2000s + 200ms);
  EXPECT_EQ(slow.now(), pawl::sim::kEpoch + 2000s - 200ms);
  EXPECT_EQ(fast.instant() - instant, 1000s + 200ms);
}

TEST(SimClock, ATimerFollowsTheDriftingClockAndIsNeverEarly) {
  for (const std::int64_t ppm : {-900'000, -333'333, -1, 1, 7, 123'457, 3'000'000}) {
    Simulation sim;
    Process& node = sim.spawn("node");
    node.set_drift_ppm(ppm);
    const auto lane = node.open_lane("lane");
    for (const auto delay : {1us, 2us, 3us, 999'999us, 1'000'001us, 86'400'000'017us}) {
      const auto begun = node.instant();
      bool ran = false;
      lane->after(delay, [&] {
        ran = true;
        EXPECT_GE(node.instant() - begun, delay);
        // Late by less than one tick of virtual time.
        EXPECT_LT(node.instant() - begun - delay, 1us + ppm / 1'000'000 * 1us + 1us);
      });
      sim.run_until_idle();
      EXPECT_TRUE(ran);
    }
  }
}

TEST(SimClock, ADriftOfACenturyDoesNotOverflow) {
  Simulation sim;
  Process& node = sim.spawn("node");
  node.set_drift_ppm(1);
  const pawl::Duration century = 24h * 36500;
  sim.run_for(century);
  EXPECT_EQ(node.now() - pawl::sim::kEpoch, century + century / 1'000'000);
}

TEST(SimRandom, ProcessesDrawDifferentNumbersAndTheSameOnesAgainWithTheSameSeed) {
  Simulation one{{.seed = 9}};
  Simulation two{{.seed = 9}};
  const auto first = one.spawn("a").random();
  EXPECT_EQ(first, two.spawn("a").random());
  EXPECT_NE(first, one.spawn("b").random());
}

}  // namespace
