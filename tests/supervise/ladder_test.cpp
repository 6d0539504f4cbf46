// SPDX-License-Identifier: Apache-2.0
// Missing observations: decisions pause at 10 s, collecting restarts at 20 s, the worker after three times.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

TEST(Ladder, DefaultsAreThoseOfTheSpecification) {
  const SupervisorOptions options;
  EXPECT_EQ(options.tick, 100ms);
  EXPECT_EQ(options.observe_every, 1s);
  EXPECT_EQ(options.observe_timeout, 2200ms);
  EXPECT_EQ(options.stale_after, 10s);
  EXPECT_EQ(options.lost_after, 20s);
  EXPECT_EQ(options.collector_restarts, 3U);
  EXPECT_EQ(options.restart_within, 30s);
  EXPECT_EQ(options.drain_base, 5s);
  EXPECT_EQ(options.backoff.first, 1s);
  EXPECT_EQ(options.backoff.factor, 2.0);
  EXPECT_EQ(options.backoff.cap, 60s);
  EXPECT_EQ(options.breaker_throws, 3U);
  EXPECT_EQ(options.breaker_window, 5min);
  EXPECT_EQ(WorkerType::Action{}.timeout, 30s);
}

void expect_refused(const std::function<void(SupervisorOptions&)>& change, std::string_view names) {
  sim::Simulation simulation;
  SupervisorOptions options;
  change(options);
  try {
    const Supervisor made(simulation.spawn("program"), {}, options);
    FAIL() << "accepted although " << names;
  } catch (const std::invalid_argument& refused) {
    EXPECT_NE(std::string_view(refused.what()).find(names), std::string_view::npos) << refused.what();
  }
}

TEST(Ladder, OptionsThatContradictEachOtherAreRefusedByName) {
  expect_refused([](auto& options) { options.tick = 0s; }, "tick");
  expect_refused([](auto& options) { options.observe_every = -1s; }, "observe_every");
  expect_refused([](auto& options) { options.observe_timeout = 0s; }, "observe_timeout");
  expect_refused([](auto& options) { options.observe_timeout = 10s; }, "stale_after");
  expect_refused([](auto& options) { options.stale_after = -1s; }, "stale_after");
  expect_refused([](auto& options) { options.stale_after = 20s; }, "lost_after");
  expect_refused([](auto& options) { options.collector_restarts = 0; }, "collector_restarts");
  expect_refused([](auto& options) { options.collectors = 0; }, "collectors");
  expect_refused([](auto& options) { options.backoff.factor = 0.5; }, "backoff");
}

TEST(Ladder, IsObservedEverySecond) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.kit.advance(2s);
  const auto before = world.site("a").looks;
  world.kit.advance(30s);
  EXPECT_EQ(world.site("a").looks - before, 30);
}

TEST(Ladder, ACollectionIsAskedToStopAfterItsTime) {
  LiftWorld world;
  world.site("a").look_listens = true;
  world.supervisor().apply({.children = {lift("a")}}).value();
  world.kit.advance(3s);
  ASSERT_TRUE(world.site("a").look_stopped_after);
  EXPECT_GE(*world.site("a").look_stopped_after, 2200ms);
  EXPECT_LE(*world.site("a").look_stopped_after, 2300ms);
}

TEST(Ladder, DecisionsPauseTenSecondsAfterTheLastObservation) {
  int decisions = 0;
  SupervisorKitOptions options;
  options.supervisor.trace = [&decisions](const TraceEntry& entry) {
    decisions += entry.path == "a" ? 1 : 0;
  };
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.kit.advance(5s);
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.time_until([&] { return world.show("a").health == Health::stale; }));
  EXPECT_GE(*world.show("a").observed_ago, 10s);
  EXPECT_LE(*world.show("a").observed_ago, 10s + 200ms);
  EXPECT_NE(world.show("a").problem.find("2200 ms"), std::string::npos) << world.show("a").problem;
  decisions = 0;
  world.kit.advance(5s);
  EXPECT_EQ(decisions, 0);
  EXPECT_EQ(world.show("a").state, "Up");
  EXPECT_EQ(world.show("a").collector_restarts, 0U);
}

TEST(Ladder, CollectingIsRestartedAfterTwentySecondsThreeTimesWithGrowingPauses) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.kit.advance(5s);
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.time_until([&] { return world.show("a").collector_restarts == 1; }));
  EXPECT_GE(*world.show("a").observed_ago, 20s);
  EXPECT_LE(*world.show("a").observed_ago, 20s + 200ms);
  EXPECT_EQ(world.show("a").health, Health::lost);
  const auto second = world.time_until([&] { return world.show("a").collector_restarts == 2; });
  const auto third = world.time_until([&] { return world.show("a").collector_restarts == 3; });
  const auto restarting = world.time_until([&] { return world.show("a").restarting; });
  ASSERT_TRUE(second && third && restarting);
  EXPECT_NEAR(std::chrono::duration<double>(*second).count(), 4.0, 0.2);
  EXPECT_NEAR(std::chrono::duration<double>(*third).count(), 6.0, 0.2);
  EXPECT_NEAR(std::chrono::duration<double>(*restarting).count(), 8.0, 0.2);
  EXPECT_LE(world.show("a").collector_restarts, 3U);
}

TEST(Ladder, AWorkerThatCannotBeObservedIsBuiltAfreshWithNewTools) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  ASSERT_EQ(world.lab.made, 1);
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").restarting; }));
  world.site("a").look_hangs = false;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }));
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.lab.made, 2);
  EXPECT_EQ(world.show("a").health, Health::good);
  EXPECT_EQ(world.show("a").collector_restarts, 0U);
}

TEST(Ladder, AnObservationThatComesAgainResetsTheCount) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.time_until([&] { return world.show("a").collector_restarts == 2; }));
  world.site("a").look_hangs = false;
  world.kit.advance(10s);
  EXPECT_EQ(world.show("a").collector_restarts, 0U);
  EXPECT_EQ(world.show("a").health, Health::good);
  EXPECT_EQ(world.show("a").incarnation, 1U);
}

TEST(Ladder, CollectionsThatFailAreTriedAgainAndLeadUpTheSameLadder) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_fails = true;
  world.kit.advance(5s);
  EXPECT_EQ(world.show("a").health, Health::good);  // its last observation is young enough
  EXPECT_NE(world.show("a").problem.find("nobody answers"), std::string::npos);
  EXPECT_GE(world.supervisor().stats().collections_failed, 4U);
  world.kit.advance(6s);
  EXPECT_EQ(world.show("a").health, Health::stale);
  world.kit.advance(10s);
  EXPECT_EQ(world.show("a").health, Health::lost);
  world.site("a").look_fails = false;
  world.kit.advance(2s);
  EXPECT_EQ(world.show("a").health, Health::good);
}

TEST(Ladder, WhatCollectingThrowsIsContainedAndCounted) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_throws = true;
  world.kit.advance(5s);
  EXPECT_NE(world.show("a").problem.find("the lamp has gone out"), std::string::npos);
  EXPECT_GE(world.supervisor().stats().exceptions, 3U);
  EXPECT_EQ(world.show("b").health, Health::good);
  world.site("a").look_throws = false;
  world.kit.advance(2s);
  EXPECT_EQ(world.show("a").problem, "");
}

TEST(Ladder, AWorkerNeverObservedIsNotDecidedOn) {
  LiftWorld world;
  world.site("a").look_hangs = true;
  world.supervisor().apply({.children = {lift("a")}}).value();
  world.kit.advance(15s);
  EXPECT_EQ(world.show("a").health, Health::unobserved);
  EXPECT_EQ(world.show("a").state, "Down");
  EXPECT_EQ(world.show("a").observed.text, "null");
  EXPECT_FALSE(world.show("a").observed_ago);
}

TEST(Ladder, HungCollectionsAreGivenUpUpToALimitAndOthersGoOn) {
  SupervisorKitOptions options;
  options.supervisor.collectors = 3;
  options.supervisor.abandoned_max = 4;
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a"), lift("b"), lift("good")}}).value();
  for (const auto* name : {"a", "b", "good"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  world.site("a").look_hangs = true;
  world.site("b").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.supervisor().stats().abandoned >= 2; }));
  for (int minute = 0; minute < 30; ++minute) {
    world.kit.advance(1min);
    EXPECT_EQ(world.show("good").health, Health::good);
    EXPECT_LE(*world.show("good").observed_ago, 2s);
    EXPECT_LE(world.supervisor().stats().abandoned, 4U);
  }
}

TEST(Ladder, OneWorkerThatAlwaysHangsDoesNotUseUpThePool) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a"), lift("good")}}).value();
  for (const auto* name : {"a", "good"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  world.site("a").look_hangs = true;
  world.kit.advance(60min);
  EXPECT_EQ(world.show("good").health, Health::good);
  EXPECT_LE(world.site("a").looking, 6);
  world.site("a").look_hangs = false;
  world.let_go();
  EXPECT_TRUE(world.comes_to("a", "Up"));
}

TEST(Ladder, WhatAGivenUpCollectionReturnsIsDropped) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").collector_restarts == 1; }));
  world.kit.advance(100ms);
  ASSERT_EQ(world.site("a").looking, 2);  // the one that was given up, and the new one
  world.site("a").level = 5;
  world.site("a").look_hangs = false;
  world.site("a").look_takes = 5s;  // what begins from now on
  // Both return the level they have seen: 1. The first must not count as an observation.
  const auto collections = world.supervisor().stats().collections;
  world.let_go();
  world.kit.advance(1s);
  EXPECT_EQ(world.supervisor().stats().collections, collections + 1);
  EXPECT_EQ(world.supervisor().stats().abandoned, 0U);
}

TEST(Ladder, HungCollectionsOfRemovedWorkersDoNotHoldUpOthers) {
  SupervisorKitOptions options;
  options.supervisor.collectors = 2;
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a"), lift("b"), lift("good")}}).value();
  for (const auto* name : {"a", "b", "good"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  for (const auto* name : {"a", "b"}) world.supervisor().park(name).value();
  for (const auto* name : {"a", "b"}) ASSERT_TRUE(world.comes_to(name, "Down"));
  for (const auto* name : {"a", "b"}) world.site(name).look_hangs = true;
  world.kit.advance(2s);
  world.supervisor().apply({.children = {lift("good")}}).value();
  ASSERT_TRUE(world.comes_to("a", ""));
  ASSERT_TRUE(world.comes_to("b", ""));
  world.kit.advance(1min);
  EXPECT_EQ(world.show("good").health, Health::good);
  EXPECT_EQ(world.supervisor().stats().abandoned, 2U);
}

TEST(Ladder, HungCollectionsOfWorkersThatWereBuiltAfreshDoNotHoldUpOthers) {
  SupervisorKitOptions options;
  options.supervisor.collectors = 1;
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a"), lift("good")}}).value();
  for (const auto* name : {"a", "good"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").looking == 1; }));
  world.site("a").look_hangs = false;
  world.supervisor().restart("a", "it hangs").value();
  world.kit.advance(5s);
  EXPECT_EQ(world.show("good").health, Health::good);
  EXPECT_LE(*world.show("good").observed_ago, 2s);
}

TEST(Ladder, AWorkerAtRestShowsThatItIsObservedAgain) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  world.site("a").look_fails = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").health == Health::lost; }));
  world.site("a").look_fails = false;
  world.kit.advance(3s);
  EXPECT_EQ(world.show("a").health, Health::good);
  world.kit.crash();
  world.kit.advance(3s);
  EXPECT_EQ(world.show("a").health, Health::good);
}

TEST(Ladder, TightLimitsPauseAWorkerAndNeverEndTheProgram) {
  SupervisorKitOptions options;
  options.supervisor.observe_timeout = 1ms;
  options.supervisor.stale_after = 2ms;
  options.supervisor.lost_after = 3ms;
  LiftWorld world(options);
  world.site("a").look_takes = 500ms;
  world.supervisor().apply({.children = {lift("a")}}).value();
  world.kit.advance(5min);
  EXPECT_EQ(world.supervisor().stats().workers, 1U);
  world.site("a").look_takes = 0ms;
  EXPECT_TRUE(world.comes_to("a", "Up"));
}

}  // namespace
}  // namespace pawl::test
