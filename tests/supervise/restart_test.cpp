// SPDX-License-Identifier: Apache-2.0
// A worker restarts: it stops in order, or after 30 s without its stop path; then a new incarnation begins.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

TEST(RestartOfAWorker, WalksItsStopPathAndBeginsWithNewTools) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().restart("a", "somebody asked").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }));
  EXPECT_FALSE(world.show("a").restarting);
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.lab.made, 2);
  EXPECT_EQ(world.site("a").lowers, 1);
  EXPECT_EQ(world.supervisor().stats().restarts, 1U);
  EXPECT_EQ(world.kit.moves("a"),
            (std::vector<std::string>{"TryingToRise", "Up", "TryingToLower", "Down", "TryingToRise", "Up"}));
}

TEST(RestartOfAWorker, IsForcedAfterThirtySecondsAndTheWorkerRunsAgain) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").stuck = true;
  world.supervisor().restart("a", "somebody asked").value();
  const auto forced = world.time_until([&] { return world.show("a").incarnation == 2; });
  ASSERT_TRUE(forced);
  EXPECT_GE(*forced, 30s);
  EXPECT_LE(*forced, 31s);
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.show("a").intent, Intent::run);
  EXPECT_FALSE(world.show("a").restarting);
  world.kit.advance(5min);
  EXPECT_EQ(world.show("a").incarnation, 2U);
}

TEST(RestartOfAWorker, IsForcedAlsoWhereAnActionIgnoresThatItIsToStop) {
  LiftWorld world;
  world.site("a").hangs = true;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 1; }));
  world.supervisor().restart("a", "it hangs").value();
  const auto forced = world.time_until([&] { return world.show("a").incarnation == 2; });
  ASSERT_TRUE(forced);
  EXPECT_LE(*forced, 31s);
}

TEST(RestartOfAWorker, ItsOwnDecisionCountsFromTheBeginning) {
  LiftWorld world(exact());
  world.site("a").fails = 5;
  world.supervisor().apply({.children = {lift("a", R"({"restart_after": 3})")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }));
  EXPECT_EQ(world.site("a").raises, 4);  // three, and the first of the fresh instance
  EXPECT_EQ(world.show("a").failures, 1U);
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.show("a").incarnation, 2U);
  EXPECT_EQ(world.site("a").raises, 6);
}

TEST(RestartOfAWorker, IsRememberedOverACrash) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").stuck = true;
  world.supervisor().restart("a", "somebody asked").value();
  world.kit.advance(5s);
  world.kit.crash();
  EXPECT_TRUE(world.show("a").restarting);
  EXPECT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }, 32s));
}

TEST(RestartOfAWorker, OfOneThatIsRemovedIsARemoval) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").stuck = true;
  world.supervisor().restart("a", "somebody asked").value();
  world.supervisor().remove("a").value();
  world.kit.advance(2s);
  world.site("a").stuck = false;
  ASSERT_TRUE(world.comes_to("a", ""));
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("a"), "");
}

TEST(RestartOfAWorker, OfOneThatIsParkedLeavesItParked) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  world.supervisor().restart("a", "somebody asked").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }));
  world.kit.advance(10s);
  EXPECT_EQ(world.kit.state("a"), "Down");
  EXPECT_EQ(world.site("a").raises, 1);
}

TEST(RestartOfAWorker, DoesNotTouchItsChildren) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor().restart("p", "somebody asked").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p").incarnation == 2; }));
  ASSERT_TRUE(world.comes_to("p", "Up"));
  EXPECT_EQ(world.show("p/c1").incarnation, 1U);
  EXPECT_EQ(world.site("p/c1").lowers, 0);
}

TEST(RestartOfAWorker, TheFreshInstanceIsNotServedTheObservationOfTheFormer) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").looking == 1; }));
  world.supervisor().restart("a", "somebody asked").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }));
  world.supervisor().run("a").value();
  world.kit.advance(5s);
  EXPECT_EQ(world.kit.state("a"), "Down");
  EXPECT_EQ(world.show("a").observed.text, "null");
  EXPECT_EQ(world.show("a").health, Health::unobserved);
}

}  // namespace
}  // namespace pawl::test
