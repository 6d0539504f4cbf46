// SPDX-License-Identifier: Apache-2.0
// The defects of the program that this one follows, each as a test that it is not here.
// tests/supervise/numbered_tests.py checks that there is one for each number.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

TEST(Defects, D01_EachWorkerIsAskedOncePerTick) {
  std::map<std::string, int> asked;
  SupervisorKitOptions options;
  options.supervisor.strict = true;
  options.supervisor.trace = [&asked](const TraceEntry& entry) { ++asked[entry.path]; };
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("p", R"({"children": 1})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.kit.advance(5s);
  asked.clear();
  const auto ticks = world.supervisor().stats().ticks;
  world.kit.advance(20s);
  const auto passed = static_cast<int>(world.supervisor().stats().ticks - ticks);
  EXPECT_EQ(passed, 200);
  // At each tick, and at each of its observations.
  EXPECT_LE(asked["p"], passed + 21);
  EXPECT_LE(asked["p/c1"], passed + 21);
  EXPECT_GE(asked["p/c1"], passed);
}

TEST(Defects, D02_NothingThatBlocksHoldsUpADecision) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("good"), lift("hung"), lift("looks"), lift("goes")}}).value();
  for (const auto* name : {"good", "hung", "looks", "goes"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  world.site("hung").hangs = true;
  world.site("hung").level = 0;
  world.site("looks").look_hangs = true;
  world.site("goes").look_hangs = true;
  world.kit.advance(3s);
  world.supervisor().remove("goes").value();
  world.supervisor().restart("looks", "it hangs").value();
  for (int round = 0; round < 20; ++round) {
    world.site("good").level = 0;
    const auto raised = world.time_until([&] { return world.site("good").level == 1; });
    ASSERT_TRUE(raised);
    EXPECT_LE(*raised, 1200ms);  // until it is observed, and no longer
  }
}

TEST(Defects, D03_CollectingAnewCuresAHungCollection) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").looking == 1; }));
  world.site("a").look_hangs = false;  // only this one hangs
  world.kit.advance(25s);
  EXPECT_EQ(world.show("a").health, Health::good);
  EXPECT_EQ(world.site("a").looking, 1);
  world.let_go();  // its end does not disturb those that came after it
  const auto looks = world.site("a").looks;
  world.kit.advance(10s);
  EXPECT_GE(world.site("a").looks - looks, 9);
  EXPECT_EQ(world.show("a").health, Health::good);
}

TEST(Defects, D04_TheBreakerCountsEveryFailure) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"mode": "throws"})")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.supervisor().stats().exceptions == 2; }, 10s));
  EXPECT_NE(world.show("a").health, Health::open);
  ASSERT_TRUE(world.kit.wait_until([&] { return world.supervisor().stats().exceptions == 3; }, 10s));
  EXPECT_EQ(world.show("a").health, Health::open);
}

TEST(Defects, D05_ABreakerNeverFreezesTheTree) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift("p", R"({"children": 2, "child_config": "{\"mode\": \"throws\"}"})")}})
      .value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.kit.state("p") == "Sagging"; }));
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p/c2").health == Health::open; }));
  world.site("p").level = 0;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("p").level == 1; }, 5s));
  world.supervisor().upsert(lift("p", R"({"children": 2})")).value();
  EXPECT_TRUE(world.comes_to("p", "Up"));
}

TEST(Defects, D06_EquallyNamedChildrenOfTwoParentsDoNotShareAnything) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift("p1", R"({"children": 1, "child_config": "{\"level\": 2}"})"),
                           lift("p2", R"({"children": 1, "child_config": "{\"level\": 3}"})")}})
      .value();
  ASSERT_TRUE(world.comes_to("p1", "Up"));
  ASSERT_TRUE(world.comes_to("p2", "Up"));
  EXPECT_EQ(world.site("p1/c1").level, 2);
  EXPECT_EQ(world.site("p2/c1").level, 3);
  world.supervisor().park("p1/c1").value();
  ASSERT_TRUE(world.comes_to("p1/c1", "Down"));
  EXPECT_EQ(world.kit.state("p2/c1"), "Up");
  EXPECT_NE(world.kit.engine().read("worker_lift", "p1/c1").value().data,
            world.kit.engine().read("worker_lift", "p2/c1").value().data);
}

TEST(Defects, D07_ConcurrentChangesAreNotLost) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SupervisorKitOptions options;
    options.simulation.seed = seed;
    options.simulation.job_delay_max = 10ms;
    LiftWorld world(options);
    world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
    ASSERT_TRUE(world.comes_to("a", "Up"));
    const auto people = world.kit.process().open_thread_pool("people", {.threads = 3, .queue = 3});
    ASSERT_TRUE(people->submit([&](std::stop_token) { world.supervisor().park("a").value(); }));
    ASSERT_TRUE(people->submit(
        [&](std::stop_token) { world.supervisor().upsert(lift("a", R"({"level": 2})")).value(); }));
    ASSERT_TRUE(people->submit(
        [&](std::stop_token) { world.supervisor().upsert(lift("b", R"({"level": 3})")).value(); }));
    world.kit.advance(30s);
    EXPECT_EQ(world.kit.state("a"), "Down") << "seed " << seed;
    EXPECT_TRUE(world.show("a").desired.text.contains(R"("level":2)")) << "seed " << seed;
    EXPECT_EQ(world.site("b").level, 3) << "seed " << seed;
  }
}

TEST(Defects, D08_ADecisionSeesOneMoment) {
  std::vector<TraceEntry> trace;
  SupervisorKitOptions options;
  options.simulation.job_delay_max = 50ms;
  options.supervisor.trace = [&trace](const TraceEntry& entry) { trace.push_back(entry); };
  LiftWorld world(options);
  const std::map<std::string, Phase> phases{{"Down", Phase::stopped},
                                            {"TryingToRise", Phase::starting},
                                            {"Up", Phase::running},
                                            {"Sagging", Phase::degraded},
                                            {"TryingToLower", Phase::stopping}};
  world.supervisor().apply({.children = {lift("p", R"({"children": 3})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  for (int round = 0; round < 5; ++round) {
    world.site("p/c" + std::to_string(1 + round % 3)).level = 0;
    world.kit.advance(2s);
  }
  for (const auto& entry : trace) {
    EXPECT_FALSE(entry.observed.text == "null");
    EXPECT_FALSE(entry.desired.text == "null");
    for (const auto& child : entry.children) EXPECT_EQ(child.phase, phases.at(child.state));
  }
}

/// What is desired and what is observed change together, again and again, while collections take their time:
/// a decision sees an observation that was made for what is desired, or the one before it, and never one of
/// the future with a wish of the past.
TEST(Defects, D08_EachPairThatADecisionSeesHasExisted) {
  std::vector<TraceEntry> trace;
  SupervisorKitOptions options;
  options.simulation.job_delay_max = 300ms;
  options.supervisor.trace = [&trace](const TraceEntry& entry) {
    if (entry.path == "a") trace.push_back(entry);
  };
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a", R"({"level": 1})")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  for (int level = 2; level <= 40; ++level) {
    world.supervisor().upsert(lift("a", R"({"level": )" + std::to_string(level) + "}")).value();
    world.kit.advance(std::chrono::milliseconds(37 * level));
  }
  world.kit.advance(10s);
  const auto number = [](const Json& json, std::string_view key) {
    const auto at = json.text.find(key);
    return at == std::string::npos ? -1 : std::stoi(json.text.substr(at + key.size()));
  };
  int last_desired = 0;
  int last_observed = 0;
  for (const auto& entry : trace) {
    const auto desired = number(entry.desired, R"("level":)");
    const auto observed = number(entry.observed, R"("level":)");
    EXPECT_LE(observed, desired);  // only what was desired is ever built
    EXPECT_GE(desired, last_desired);
    EXPECT_GE(observed, last_observed);
    last_desired = desired;
    last_observed = observed;
    // The same entry decides the same: it holds everything that was decided on.
    EXPECT_TRUE(replay(world.supervisor().types(), entry)) << entry.result;
  }
  EXPECT_EQ(last_observed, 40);
  EXPECT_GE(trace.size(), 40U);
}

TEST(Defects, D09_AFollowerOfTheLogMissesNothing) {
  LiftWorld world;
  auto subscription = world.kit.engine().subscribe("").value();
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  std::map<std::string, std::int64_t> versions;
  for (bool more = true; more;) {
    const auto events = subscription.poll(5).value();
    more = !events.empty();
    for (const auto& event : events) {
      const auto [last, first] = versions.emplace(event.key, event.version);
      EXPECT_TRUE(first || event.version == last->second + 1) << event.key;
      last->second = event.version;
    }
  }
  EXPECT_GE(versions["p/c2"], 5);
}

TEST(Defects, D09_AFollowerBehindWhatIsKeptIsToldSoAndGetsNoHole) {
  SupervisorKitOptions options;
  options.engine.keep = 1h;
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  auto behind = world.kit.engine().subscribe("begin").value();
  ASSERT_EQ(behind.poll(1).value().size(), 1U);
  world.kit.advance(2h);
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  ASSERT_TRUE(world.kit.engine().retain());
  const auto resumed = world.kit.engine().subscribe(behind.cursor());
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code(), Code::cursor_expired);
  const auto polled = behind.poll(100);
  ASSERT_FALSE(polled);
  EXPECT_EQ(polled.error().code(), Code::cursor_expired);
  // From the beginning of what is kept there is no hole.
  std::map<std::string, std::int64_t> versions;
  auto kept = world.kit.engine().subscribe("begin").value();
  const auto events = kept.poll(1000).value();
  for (const auto& event : events) {
    const auto [last, first] = versions.emplace(event.key, event.version);
    EXPECT_TRUE(first || event.version == last->second + 1) << event.key;
    last->second = event.version;
  }
  EXPECT_FALSE(versions.empty());
}

TEST(Defects, D10_MappingGlobalsAndLocationHaveAnEffect) {
  LiftWorld world;
  auto parent = lift("p", R"({"children": 1, "child_mapping": {"Up": "park"},
      "child_config": "{\"variable\": \"{{ "{{" }} .global.site }}\"}"})");
  TreeSpec tree{.children = {parent}};
  tree.variables.global["site"] = {R"("north")"};
  world.supervisor().apply(tree).value();
  ASSERT_TRUE(world.comes_to("p", "Sagging"));
  world.kit.advance(5s);
  EXPECT_EQ(world.kit.state("p/c1"), "Down");
  EXPECT_TRUE(world.show("p/c1").desired.text.contains("north"));
  const auto merged = merge({.levels = {"acme", "north"}}, {.levels = {"", "", "hall"}}).value();
  EXPECT_EQ(location_path(merged), "acme.north.hall");
}

TEST(Defects, D11_RestartsOfCollectingAreCountedPerWorker) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").collector_restarts == 2; }));
  EXPECT_EQ(world.show("b").collector_restarts, 0U);
}

TEST(Defects, D12_AForcedRestartDoesNotRemoveTheWorker) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").stuck = true;
  world.supervisor().restart("a", "somebody asked").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }, 31s));
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("a"), "Up");
  EXPECT_FALSE(world.show("a").restarting);
  EXPECT_EQ(world.kit.engine().read("worker_lift", "a").value().generation, 1);
}

TEST(Defects, D13_AnErrorInTheListOfChildrenRemovesNobody) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor().upsert(lift("p", R"({"mode": "throws when it names its children"})")).value();
  world.kit.advance(10s);
  world.kit.crash();
  world.kit.advance(10s);
  EXPECT_EQ(world.kit.state("p/c1"), "Up");
  EXPECT_EQ(world.kit.state("p/c2"), "Up");
  EXPECT_EQ(world.site("p/c1").lowers, 0);
}

TEST(Defects, D14_AChildThatReappearsWhileItStopsIsNoZombie) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 1})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.site("p/c1").stuck = true;
  world.supervisor().upsert(lift("p", R"({"children": 0})")).value();
  ASSERT_TRUE(world.comes_to("p/c1", "TryingToLower"));
  world.supervisor().upsert(lift("p", R"({"children": 1})")).value();
  world.site("p/c1").stuck = false;
  ASSERT_TRUE(world.comes_to("p/c1", "Up"));
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("p/c1"), "Up");
}

TEST(Defects, D15_AChildIsEnabledUnlessSaidAndAParkedOneDoesNotFlap) {
  EXPECT_TRUE(ChildSpec{}.enabled);
  LiftWorld world;
  auto parked = lift("a");
  parked.enabled = false;
  world.supervisor().apply({.children = {parked}}).value();
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("a"), "Down");
  EXPECT_EQ(world.show("a").transitions, 0);
}

TEST(Defects, D16_AStopPassesEveryGate) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("stale"), lift("open"), lift("acts")}}).value();
  for (const auto* name : {"stale", "open", "acts"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  world.supervisor().upsert(lift("open", R"({"level": 2, "mode": "throws"})")).value();
  world.site("stale").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("stale").health == Health::stale; }));
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("open").health == Health::open; }));
  world.site("acts").takes = 2s;
  world.site("acts").level = 0;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("acts").raising == 1; }));
  world.site("acts").look_hangs = true;  // nobody will see the end of the action
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("acts").raising == 0; }));
  for (const auto* name : {"stale", "open", "acts"}) world.supervisor().park(name).value();
  for (const auto* name : {"stale", "open", "acts"})
    EXPECT_TRUE(world.kit.wait_until(
        [&] { return world.show(name).phase >= Phase::stopping || world.show(name).phase == Phase::stopped; },
        3s))
        << name;
}

TEST(Defects, D16_AStopPassesTheGateOfThoseThatGoInCircles) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"mode": "circles"})")}}).value();
  ASSERT_TRUE(world.kit.wait_until(
      [&] { return world.show("a").reason.starts_with("changes its state in circles"); }));
  world.site("a").look_hangs = true;  // nobody will end its waiting
  world.kit.advance(1s);
  ASSERT_TRUE(world.show("a").reason.starts_with("changes its state in circles"));
  world.supervisor().park("a").value();
  EXPECT_TRUE(world.kit.wait_until([&] { return world.site("a").lowers > 0; }, 3s));
}

TEST(Defects, D17_AWorkerMadeAgainIsNotServedAnOldObservation) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().remove("a").value();
  ASSERT_TRUE(world.comes_to("a", ""));
  world.site("a").look_hangs = true;
  world.supervisor().upsert(lift("a")).value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  world.kit.crash();
  world.kit.advance(5s);
  EXPECT_EQ(world.kit.state("a"), "Down");
  EXPECT_EQ(world.show("a").health, Health::unobserved);
  EXPECT_EQ(world.show("a").observed.text, "null");
}

}  // namespace
}  // namespace pawl::test
