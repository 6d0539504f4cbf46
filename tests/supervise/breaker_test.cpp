// SPDX-License-Identifier: Apache-2.0
// Exceptions in a worker's decisions: its decisions pause, and other workers go on.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

TEST(Breaker, OpensAfterThreeExceptionsAndLeavesTheWorkerAlone) {
  LiftWorld world(exact());
  world.supervisor().apply({.children = {lift("a", R"({"mode": "throws"})")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").health == Health::open; }, 10s));
  EXPECT_EQ(world.supervisor().stats().exceptions, 3U);
  EXPECT_NE(world.show("a").problem.find("the lift is broken"), std::string::npos) << world.show("a").problem;
  EXPECT_EQ(world.show("a").state, "TryingToRise");
}

TEST(Breaker, ProbesNowAndThenLessAndLessOften) {
  LiftWorld world(exact());
  world.supervisor().apply({.children = {lift("a", R"({"mode": "throws"})")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").health == Health::open; }, 10s));
  const auto at = [&](std::uint64_t count) {
    return world.time_until([&, count] { return world.supervisor().stats().exceptions == count; });
  };
  std::vector<std::optional<Duration>> pauses;
  for (std::uint64_t count = 4; count < 11; ++count) pauses.push_back(at(count));
  const std::vector<double> expected{1, 2, 4, 8, 16, 32, 60};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(pauses[i]) << i;
    EXPECT_NEAR(std::chrono::duration<double>(*pauses[i]).count(), expected[i], 1.2) << i;
  }
}

TEST(Breaker, ClosesWhenAProbeIsGood) {
  LiftWorld world(exact());
  world.supervisor().apply({.children = {lift("a", R"({"mode": "throws"})")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").health == Health::open; }, 10s));
  world.supervisor().upsert(lift("a")).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.show("a").health, Health::good);
  EXPECT_EQ(world.show("a").problem, "");
}

TEST(Breaker, ExceptionsLongAgoDoNotCount) {
  SupervisorKitOptions options = exact();
  options.supervisor.breaker_window = 1s;
  options.supervisor.tick = 600ms;
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a", R"({"mode": "throws"})")}}).value();
  world.kit.advance(30s);
  EXPECT_GE(world.supervisor().stats().exceptions, 20U);
  EXPECT_NE(world.show("a").health, Health::open);
}

TEST(Breaker, NeitherFreezesTheParentNorSiblings) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift("p", R"({"children": 2, "child_config": "{}"})"), lift("a")}})
      .value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor()
      .upsert(lift("p", R"({"children": 2, "child_config": "{\"level\": 2, \"mode\": \"throws\"}"})"))
      .value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p/c1").health == Health::open; }));
  ASSERT_TRUE(world.comes_to("p", "Sagging"));
  world.site("a").level = 0;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raises == 2; }, 5s));
  world.supervisor().upsert(lift("p", R"({"children": 2, "child_config": "{\"level\": 2}"})")).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  EXPECT_EQ(world.show("p/c2").health, Health::good);
}

TEST(Breaker, AnOpenWorkerCanBeParkedAndRemoved) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"mode": "throws"})")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").health == Health::open; }));
  world.kit.advance(2min);
  world.supervisor().park("a").value();
  const auto parked = world.time_until([&] { return world.show("a").state == "Down"; });
  ASSERT_TRUE(parked);
  EXPECT_LE(*parked, 3s);
  world.supervisor().remove("a").value();
  EXPECT_TRUE(world.comes_to("a", ""));
}

TEST(Breaker, AnExceptionWhileStoppingIsContainedToo) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift("a", R"({"mode": "throws when it stops"})"), lift("b")}})
      .value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().park("a").value();
  world.kit.advance(10s);
  EXPECT_EQ(world.show("a").state, "Up");
  EXPECT_EQ(world.show("a").health, Health::open);
  EXPECT_EQ(world.show("b").health, Health::good);
  world.supervisor().upsert(lift("a")).value();
  EXPECT_TRUE(world.comes_to("a", "Down"));
}

TEST(Breaker, AWorkerThatGoesInCirclesWaitsForObservationsInsteadOfSpinning) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"mode": "circles"})"), lift("b")}}).value();
  world.kit.advance(30s);
  EXPECT_LE(world.show("a").transitions, 31 * 12);
  EXPECT_EQ(world.show("b").state, "Up");
}

}  // namespace
}  // namespace pawl::test
