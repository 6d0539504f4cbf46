// SPDX-License-Identifier: Apache-2.0
// The end of the program: everything comes to rest, children first, each level in its time.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

constexpr const char* kDrainTree =
    R"({"children": 2, "child_config": "{\"children\": 2, \"child_config\": \"{}\"}"})";

TEST(Drain, OfThreeLevelsIsCleanAndWithinTheBudget) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", kDrainTree), lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  const auto began = world.kit.simulation().elapsed();
  const auto report = world.supervisor().drain(5s);
  EXPECT_TRUE(report.clean);
  EXPECT_TRUE(report.cut.empty());
  EXPECT_LT(world.kit.simulation().elapsed() - began, 15s);
  for (const auto& view : world.supervisor().tree()) EXPECT_EQ(view.state, "Down") << view.identity.path;
  EXPECT_EQ(world.supervisor().stats().workers, 8U);  // at rest, not removed
}

TEST(Drain, ChildrenRestBeforeTheirParents) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", kDrainTree)}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor().drain();
  const auto rested_at = [&](std::string_view path) {
    const auto history = world.kit.engine().history("worker_lift", path, 0, 100).value();
    for (const auto& event : history.events) {
      if (event.event == "Moved" && event.state == "TryingToLower") return event.seq;
    }
    return std::int64_t{0};
  };
  const auto down_at = [&](std::string_view path) {
    const auto history = world.kit.engine().history("worker_lift", path, 0, 100).value();
    for (const auto& event : history.events) {
      if (event.event == "Moved" && event.state == "Down") return event.seq;
    }
    return std::int64_t{0};
  };
  for (const auto* child : {"p/c1", "p/c2"}) {
    EXPECT_GT(rested_at("p"), down_at(child));
    EXPECT_GT(rested_at(child), down_at(std::string(child) + "/c1"));
  }
}

TEST(Drain, AWorkerThatDoesNotStopIsCutAtTheBudgetOfItsLevels) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})"), lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.site("p/c2").stuck = true;
  const auto began = world.kit.simulation().elapsed();
  const auto report = world.supervisor().drain(5s);
  EXPECT_FALSE(report.clean);
  EXPECT_EQ(report.cut, std::vector<std::string>{"p/c2"});
  const auto warned = world.log.with("workers did not stop in time");
  ASSERT_EQ(warned.size(), 1U);
  EXPECT_EQ(warned.front().level, LogLevel::warn);
  EXPECT_EQ(warned.front().fields.at("worker"), "p/c2");
  const auto took = world.kit.simulation().elapsed() - began;
  EXPECT_GE(took, 10s);
  EXPECT_LE(took, 10s + 200ms);
  EXPECT_EQ(world.kit.state("p"), "Down");  // it does not wait for ever
  EXPECT_EQ(world.kit.state("p/c1"), "Down");
}

TEST(Drain, AnActionThatIgnoresItsEndIsCutToo) {
  LiftWorld world;
  world.site("a").hangs = true;
  world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 1; }));
  const auto report = world.supervisor().drain(5s);
  EXPECT_EQ(report.cut, std::vector<std::string>{"a"});
  EXPECT_EQ(world.kit.state("b"), "Down");
}

TEST(Drain, ASecondSignalEndsIt) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").stuck = true;
  const auto people = world.kit.process().open_lane("people");
  people->after(2s, [&] { world.supervisor().force(); });
  const auto began = world.kit.simulation().elapsed();
  const auto report = world.supervisor().drain(1h);
  EXPECT_FALSE(report.clean);
  EXPECT_EQ(report.cut, std::vector<std::string>{"a"});
  EXPECT_LE(world.kit.simulation().elapsed() - began, 2s + 100ms);
}

TEST(Drain, StopsAlsoWhoHasNoFreshObservation) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_hangs = true;
  world.kit.advance(15s);
  const auto people = world.kit.process().open_lane("people");
  people->after(3s, [&] { world.site("a").look_hangs = false, world.let_go(); });
  EXPECT_TRUE(world.supervisor().drain(5s).clean);
  EXPECT_EQ(world.site("a").level, 0);
}

TEST(Drain, IsNotRememberedByTheNextStart) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().park("b").value();
  EXPECT_TRUE(world.supervisor().drain().clean);
  EXPECT_EQ(world.show("a").reason, "stopped, because the program ends");
  world.kit.restart();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.kit.state("b"), "Down");
  EXPECT_EQ(world.show("a").incarnation, 1U);
}

TEST(Drain, ARestartUnderWayBecomesARest) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().restart("a", "somebody asked").value();
  EXPECT_TRUE(world.supervisor().drain().clean);
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("a"), "Down");
}

TEST(Drain, OfNothingIsCleanAtOnce) {
  LiftWorld world;
  EXPECT_TRUE(world.supervisor().drain().clean);
}

TEST(Drain, MakesNoWorkersAnyMore) {
  LiftWorld world;
  EXPECT_TRUE(world.supervisor().drain().clean);
  world.supervisor().apply({.children = {lift("a")}}).value();
  world.kit.advance(10s);
  EXPECT_EQ(world.supervisor().tree().size(), 0U);
  world.kit.restart();
  EXPECT_TRUE(world.comes_to("a", "Up"));
}

TEST(Drain, TwoAtOnceBothReturn) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  int returned = 0;
  const auto people = world.kit.process().open_thread_pool("people", {.threads = 2, .queue = 2});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(people->submit([&](std::stop_token) {
      if (world.supervisor().drain().clean) ++returned;
    }));
  }
  world.kit.advance(30s);
  EXPECT_EQ(returned, 2);
}

}  // namespace
}  // namespace pawl::test
