// SPDX-License-Identifier: Apache-2.0
// The threads that collect and those that destroy: who stands in line, who hangs, and the end of them.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

TEST(CollectingPool, AWorkerWhoseCollectionStandsInLineBecomesStaleAndNothingElse) {
  SupervisorKitOptions options;
  options.supervisor.collectors = 1;
  LiftWorld world(options);
  TreeSpec tree;
  for (int i = 0; i < 12; ++i) tree.children.push_back(lift("w" + std::to_string(i)));
  world.supervisor().apply(tree).value();
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(world.comes_to("w" + std::to_string(i), "Up"));
  // Each has its turn every 36 seconds: long after collecting would be restarted.
  for (int i = 0; i < 12; ++i) world.site("w" + std::to_string(i)).look_takes = 3s;
  bool stale = false;
  for (int second = 0; second < 600; ++second) {
    world.kit.advance(1s);
    stale = stale || world.show("w0").health == Health::stale;
    ASSERT_NE(world.show("w0").health, Health::lost) << second;
  }
  EXPECT_TRUE(stale);
  EXPECT_EQ(world.supervisor().stats().collector_restarts, 0U);
  EXPECT_EQ(world.supervisor().stats().restarts, 0U);
  EXPECT_EQ(world.supervisor().stats().abandoned, 0U);
}

TEST(CollectingPool, ACollectionThatHangsIsGivenUpAfterItsTimeAlsoIfItStoodInLineBefore) {
  SupervisorKitOptions options;
  options.supervisor.collectors = 1;
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("first"), lift("second")}}).value();
  for (const auto* name : {"first", "second"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  world.site("first").look_takes = 15s;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("first").looking == 1; }));
  world.site("second").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("second").looking == 1; }));
  const auto lost = world.time_until([&] { return world.show("second").collector_restarts == 1; });
  ASSERT_TRUE(lost);
  EXPECT_GE(*lost, 18s);
  EXPECT_LE(*lost, 21s);
  world.site("first").look_takes = 0s;
  world.kit.advance(20s);
}

TEST(CollectingPool, SlowCollectionsDoNotKeepOthersFromTheirs) {
  SupervisorKitOptions options;
  options.supervisor.collectors = 4;
  LiftWorld world(options);
  TreeSpec tree{.children = {lift("quick")}};
  for (int i = 0; i < 30; ++i) tree.children.push_back(lift("slow" + std::to_string(i)));
  world.supervisor().apply(tree).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.supervisor().stats().workers == 31; }));
  world.kit.advance(10s);
  for (int i = 0; i < 30; ++i) world.site("slow" + std::to_string(i)).look_takes = 2s;
  world.kit.advance(30s);  // until all of them are known to be slow
  for (int second = 0; second < 60; ++second) {
    world.kit.advance(1s);
    EXPECT_LE(*world.show("quick").observed_ago, 2s);
  }
  for (int i = 0; i < 30; ++i) EXPECT_GE(world.site("slow" + std::to_string(i)).looks, 3) << i;
}

TEST(CollectingPool, ARestartThatTheStoreRefusesIsAskedForAgain) {
  LiftWorld world({}, [](WorkerTypes& types, Lab& lab, Runtime& runtime) {
    auto type = lift_type(lab, runtime, "rigid");  // its machine does not know of restarts
    for (auto& event : type.machine.events) {
      if (event.name != "RestartAsked") continue;
      event.fire_json = [](std::size_t, Definition::Data, std::string_view,
                           Effects*) -> Result<Definition::Step> {
        return fail(Code::guard_refused, "never");
      };
    }
    types.add(std::move(type));
  });
  auto spec = lift("a");
  spec.worker_type = "rigid";
  world.supervisor().apply({.children = {spec}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_hangs = true;
  world.kit.advance(10min);
  EXPECT_GE(world.log.with("a step of a worker was refused").size(), 5U);  // one a minute is logged
}

TEST(CollectingPool, ToolsWhoseMakingHangsHoldOneThreadAndAreMadeAnew) {
  bool hangs = true;
  LiftWorld world({}, [&hangs](WorkerTypes& types, Lab& lab, Runtime& runtime) {
    auto type = lift_type(lab, runtime, "slowly_made");
    type.make_tools = [&, make = type.make_tools](const WorkerIdentity& who) {
      if (std::exchange(hangs, false)) {
        const auto never = lab.never;
        (void)runtime.wait(*never);
      }
      return make(who);
    };
    types.add(std::move(type));
  });
  auto spec = lift("a");
  spec.worker_type = "slowly_made";
  world.supervisor().apply({.children = {spec, lift("good")}}).value();
  ASSERT_TRUE(world.comes_to("good", "Up"));
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").collector_restarts == 3; }));
  EXPECT_EQ(world.supervisor().stats().abandoned, 1U);  // those after it do not wait for ever
  EXPECT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.show("a").incarnation, 2U);
}

TEST(ToolDestroyer, ToolsThatAreSlowToGoHoldUpNoCollection) {
  SupervisorKitOptions options;
  options.supervisor.collectors = 1;
  LiftWorld world(options, [](WorkerTypes& types, Lab& lab, Runtime& runtime) {
    auto type = lift_type(lab, runtime, "sticky");
    type.make_tools = [&lab, &runtime](const WorkerIdentity& who) -> Result<std::shared_ptr<void>> {
      return std::shared_ptr<LiftTools>(new LiftTools{&lab, &runtime, who.path},
                                        [&runtime, never = lab.never](LiftTools* tools) {
                                          (void)runtime.wait(*never);
                                          delete tools;
                                        });
    };
    types.add(std::move(type));
  });
  auto spec = lift("a");
  spec.worker_type = "sticky";
  world.supervisor().apply({.children = {spec, lift("good")}}).value();
  for (const auto* name : {"a", "good"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  for (std::uint32_t times = 2; times < 5; ++times) {
    world.supervisor().restart("a", "somebody asked").value();
    ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == times; }));
    ASSERT_TRUE(world.comes_to("a", "Up"));
  }
  world.kit.advance(30s);
  EXPECT_EQ(world.show("good").health, Health::good);
  EXPECT_LE(*world.show("good").observed_ago, 2s);
}

TEST(EndOfPools, ACollectionThatHangsDoesNotHoldUpTheEndForEver) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a"), lift("good")}}).value();
  for (const auto* name : {"a", "good"}) ASSERT_TRUE(world.comes_to(name, "Up"));
  world.site("a").look_hangs = true;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").looking == 1; }));
  const auto began = world.kit.simulation().elapsed();
  world.kit.restart();
  EXPECT_EQ(world.kit.simulation().elapsed() - began, 5s);
  world.site("a").look_hangs = false;
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.let_go();  // what it returns now reaches nobody
  world.kit.advance(5s);
  EXPECT_EQ(world.site("a").looking, 0);
  EXPECT_EQ(world.kit.state("a"), "Up");
}

}  // namespace
}  // namespace pawl::test
