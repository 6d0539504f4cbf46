// SPDX-License-Identifier: Apache-2.0
// Actions: one at a time, in their time, again after a pause; and what is decided after them.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

std::vector<double> pauses_between(const std::vector<Instant>& at) {
  std::vector<double> found;
  for (std::size_t i = 1; i < at.size(); ++i)
    found.push_back(std::chrono::duration<double>(at[i] - at[i - 1]).count());
  return found;
}

TEST(Actions, FailuresAreWaitedForLongerAndLongerUpToTheCap) {
  LiftWorld world(exact());
  world.site("a").fails = 9;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raises == 10; }));
  const auto pauses = pauses_between(world.site("a").raised_at);
  const std::vector<double> expected{1, 2, 4, 8, 16, 32, 60, 60, 60};
  ASSERT_EQ(pauses.size(), expected.size());
  for (std::size_t i = 0; i < pauses.size(); ++i) EXPECT_NEAR(pauses[i], expected[i], 1.2) << i;
}

TEST(Actions, TheViewTellsHowOftenAndWhenItIsTriedAgain) {
  LiftWorld world(exact());
  world.site("a").fails = 3;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 3; }));
  world.kit.advance(1100ms);
  const auto view = world.show("a");
  EXPECT_EQ(view.problem, "the motor does not start");
  ASSERT_TRUE(view.next_try);
  EXPECT_LE(*view.next_try, 4s);
  EXPECT_GE(*view.next_try, 1s);
  EXPECT_EQ(world.supervisor().stats().actions_failed, 3U);
}

TEST(Actions, SuccessResetsThePause) {
  LiftWorld world(exact());
  world.site("a").fails = 3;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.show("a").failures, 0U);
  world.site("a").raised_at.clear();
  world.site("a").fails = 1;
  world.site("a").level = 0;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raised_at.size() == 2; }));
  EXPECT_NEAR(pauses_between(world.site("a").raised_at)[0], 1.0, 1.2);
}

TEST(Actions, SuccessResetsThePauseAlsoWhereItHasNoEffect) {
  LiftWorld world(exact());
  world.site("a").fails = 4;
  world.site("a").does_nothing = true;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raises == 8; }));
  const auto pauses = pauses_between(world.site("a").raised_at);
  ASSERT_EQ(pauses.size(), 7U);
  EXPECT_NEAR(pauses[3], 8.0, 1.2);
  for (std::size_t i = 4; i < pauses.size(); ++i) EXPECT_LE(pauses[i], 2.2) << i;
  EXPECT_EQ(world.show("a").failures, 0U);
}

TEST(Actions, AChangeOfStateResetsThePause) {
  LiftWorld world(exact());
  world.site("a").fails = 6;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 5; }));
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  world.supervisor().run("a").value();
  ASSERT_TRUE(world.comes_to("a", "TryingToRise"));
  EXPECT_LE(world.show("a").failures, 1U);
  const auto raised = world.time_until([&] { return world.site("a").raises == 6; });
  ASSERT_TRUE(raised);
  EXPECT_LE(*raised, 2s);
}

TEST(Actions, ThePauseIsTheSameAfterACrash) {
  LiftWorld world(exact());
  world.site("a").fails = 1000;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 6; }));
  world.kit.crash();
  EXPECT_EQ(world.show("a").failures, 6U);
  world.kit.advance(25s);
  EXPECT_EQ(world.site("a").raises, 6);
  world.kit.advance(10s);
  EXPECT_EQ(world.site("a").raises, 7);
}

TEST(Actions, AClockThatIsSetBackDoesNotLengthenThePause) {
  LiftWorld world(exact());
  world.site("a").fails = 1000;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 3; }));
  world.kit.process().jump_clock(-24h);
  world.kit.advance(10s);
  EXPECT_EQ(world.site("a").raises, 4);
  world.kit.crash();
  world.kit.process().jump_clock(-24h);
  world.kit.advance(20s);
  EXPECT_GE(world.site("a").raises, 5);
}

TEST(Actions, SuccessWithoutEffectIsRepeatedButNotEndlesslyFast) {
  LiftWorld world;
  world.site("a").does_nothing = true;
  world.supervisor().apply({.children = {lift("a")}}).value();
  world.kit.advance(60s);
  EXPECT_GE(world.site("a").raises, 20);
  EXPECT_LE(world.site("a").raises, 70);
}

TEST(Actions, AnActionOutOfTimeIsAskedToStopAndHasFailed) {
  LiftWorld world(exact());
  world.site("a").takes = 1h;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raises == 1; }));
  world.kit.advance(29s);
  EXPECT_EQ(world.site("a").cancelled, 0);
  world.kit.advance(2s);
  EXPECT_EQ(world.site("a").cancelled, 1);
  EXPECT_EQ(world.show("a").failures, 1U);
  EXPECT_NE(world.show("a").problem.find("took too long"), std::string::npos) << world.show("a").problem;
}

TEST(Actions, AnActionThatIgnoresItsEndIsGivenUpAndNeverRunsBesideItself) {
  LiftWorld world(exact());
  world.site("a").hangs = true;
  world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 1; }, 60s));
  world.kit.advance(5min);
  EXPECT_EQ(world.site("a").most_raising, 1);
  EXPECT_EQ(world.site("a").raises, 1);
  EXPECT_GE(world.show("a").failures, 3U);
  EXPECT_NE(world.show("a").problem.find("abandoned"), std::string::npos) << world.show("a").problem;
  EXPECT_EQ(world.show("b").state, "Up");
  // When it returns at last, it can be run again.
  world.site("a").hangs = false;
  world.let_go();
  EXPECT_TRUE(world.comes_to("a", "Up"));
}

TEST(Actions, WhatAGivenUpActionReturnsIsDropped) {
  LiftWorld world(exact());
  world.site("a").hangs = true;
  world.site("a").fails = 1;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 1; }, 60s));
  const auto problem = world.show("a").problem;
  world.site("a").hangs = false;
  world.let_go();  // it fails now, but nobody listens
  world.kit.advance(0s);
  EXPECT_EQ(world.show("a").failures, 1U);
  EXPECT_EQ(world.show("a").problem, problem);
}

TEST(Actions, AGivenUpActionDoesNotRunBesideThatOfAFreshInstance) {
  LiftWorld world(exact());
  world.site("a").hangs = true;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 1; }));
  world.supervisor().restart("a", "it hangs").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }));
  world.kit.advance(2min);
  EXPECT_EQ(world.site("a").most_raising, 1);
  world.site("a").hangs = false;
  world.let_go();
  EXPECT_TRUE(world.comes_to("a", "Up"));
}

TEST(Actions, WhatAnActionThrowsIsAFailureOfItsWorkerAlone) {
  LiftWorld world(exact());
  world.site("a").throws = true;
  world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 3; }));
  EXPECT_NE(world.show("a").problem.find("the rope has snapped"), std::string::npos);
  EXPECT_EQ(world.show("b").state, "Up");
  world.site("a").throws = false;
  EXPECT_TRUE(world.comes_to("a", "Up"));
}

TEST(Actions, AnObservationThatBeganBeforeTheEndOfTheActionDoesNotCount) {
  LiftWorld world;
  world.site("a").takes = 3500ms;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 1; }));
  world.site("a").look_takes = 2s;  // so that one is always under way; it tells the level at its beginning
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 0; }));
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.site("a").raises, 1);
}

TEST(Actions, WhileAnActionRunsNothingIsDecided) {
  LiftWorld world;
  world.site("a").takes = 20s;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 1; }));
  const auto decisions = world.supervisor().stats().decisions;
  world.site("a").level = 1;  // observed meanwhile
  world.kit.advance(10s);
  EXPECT_EQ(world.supervisor().stats().decisions, decisions);
  EXPECT_EQ(world.show("a").action, "Raise");
}

TEST(Actions, AStopInterruptsTheActionAtOnce) {
  LiftWorld world;
  world.site("a").takes = 20s;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 1; }));
  world.supervisor().park("a").value();
  const auto stopped = world.time_until([&] { return world.site("a").cancelled == 1; });
  ASSERT_TRUE(stopped);
  EXPECT_LE(*stopped, 200ms);
  ASSERT_TRUE(world.comes_to("a", "Down"));
  EXPECT_EQ(world.show("a").failures, 0U);
}

TEST(Actions, AStopPassesAStaleObservation) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").health == Health::stale; }));
  world.supervisor().park("a").value();
  const auto begun = world.time_until([&] { return world.site("a").lowers > 0; });
  ASSERT_TRUE(begun);
  EXPECT_LE(*begun, 300ms);
}

TEST(Actions, AStopPassesTheGateOfTheLastActionAfterTheTimeOfOneCollection) {
  LiftWorld world;
  world.site("a").takes = 5s;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 1; }));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 0; }));
  world.kit.advance(100ms);
  ASSERT_EQ(world.show("a").state, "TryingToRise");
  world.supervisor().park("a").value();
  const auto begun = world.time_until([&] { return world.show("a").state != "TryingToRise"; });
  ASSERT_TRUE(begun);
  EXPECT_LE(*begun, 2500ms);
  EXPECT_EQ(world.kit.moves("a").at(1), "TryingToLower");
}

TEST(Actions, AnActionThatACrashCutsOffHasNotFailedAndIsRunAgain) {
  LiftWorld world;
  world.site("a").takes = 5s;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raising == 1; }));
  world.kit.crash();
  EXPECT_EQ(world.show("a").action, "Raise");
  EXPECT_EQ(world.show("a").failures, 0U);
  ASSERT_TRUE(world.kit.wait_for("a", "Up", 8s));
  EXPECT_EQ(world.site("a").raises, 2);
  EXPECT_EQ(world.site("a").most_raising, 1);
}

TEST(Actions, HundredFiftyActionsOnFiftyWorkersAllEnd) {
  LiftWorld world;
  TreeSpec tree;
  for (int i = 0; i < 50; ++i) {
    const auto name = "lift-" + std::to_string(i);
    world.site(name).takes = 300ms;
    world.site(name).fails = 2;
    tree.children.push_back(lift(name));
  }
  world.supervisor().apply(tree).value();
  const auto all_are_up = [&] {
    const auto tree = world.supervisor().tree();
    return tree.size() == 50 &&
           std::ranges::all_of(tree, [](const auto& view) { return view.state == "Up"; });
  };
  ASSERT_TRUE(world.kit.wait_until(all_are_up));
  for (const auto& [_, site] : world.lab.sites) {
    EXPECT_EQ(site.raises, 3);
    EXPECT_EQ(site.most_raising, 1);
  }
}

}  // namespace
}  // namespace pawl::test
