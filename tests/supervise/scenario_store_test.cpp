// SPDX-License-Identifier: Apache-2.0
// The acceptance scenario of persistence, in the terms of this program: what a supervisor writes is cut by
// the engine's retention, and nothing that is in use goes with it.
#include <gtest/gtest.h>

#include "tests/supervise/examples.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

SupervisorKitOptions with_retention() {
  SupervisorKitOptions options;
  options.engine.keep = 1h;
  options.engine.forget_finished = 1h;
  return options;
}

std::size_t stored_workers(ExampleWorld& world) {
  return world.kit.engine().list({.machine = "worker_child", .limit = 1000}).value().instances.size();
}

TEST(Scenario, PersistenceKeepsWhatIsInUseAndForgetsTheRest) {
  ExampleWorld world(with_retention());
  auto& supervisor = world.kit.supervisor();
  world.apply({example("kernel", "helloworld"), example("group", "parent", R"({"children_count": 2})")});
  ASSERT_TRUE(world.kit.wait_for("group", "Running", 10s));
  supervisor.park("group").value();
  ASSERT_TRUE(world.kit.wait_for("group", "Stopped", 10s));
  for (int round = 0; round < 50; ++round) {
    const auto name = "w" + std::to_string(round);
    supervisor.upsert(example(name, "child")).value();
    ASSERT_TRUE(world.kit.wait_for(name, "Connected", 10s));
    supervisor.remove(name).value();
    ASSERT_TRUE(world.kit.wait_for(name, "", 10s));
  }
  EXPECT_EQ(stored_workers(world), 52U);  // removed, but not forgotten yet
  const auto made_at = world.show("group/child-1").identity.created_at;
  world.kit.advance(2h);
  supervisor.upsert(example("late", "child")).value();  // retention follows commits
  ASSERT_TRUE(world.kit.wait_for("late", "Connected", 10s));
  world.kit.advance(2min);
  EXPECT_EQ(stored_workers(world), 3U);
  const auto history = world.kit.engine().history("worker_parent", "group", 0, 1000).value();
  EXPECT_LE(history.events.size(), 1U);  // where it stands now
  EXPECT_TRUE(history.truncated);
  world.kit.crash();
  EXPECT_EQ(world.kit.found().workers, 5U);
  EXPECT_EQ(world.show("group/child-1").identity.created_at, made_at);
  EXPECT_EQ(world.show("group").intent, Intent::park);
  EXPECT_EQ(world.kit.state("kernel"), "Running");
  world.kit.supervisor().run("group").value();
  EXPECT_TRUE(world.kit.wait_for("group", "Running", 10s));
}

TEST(Scenario, PersistenceNeedsNothingWhileNothingHappens) {
  ExampleWorld world(with_retention());
  world.apply({example("kernel", "helloworld"), example("group", "parent", R"({"children_count": 2})")});
  ASSERT_TRUE(world.kit.wait_for("group", "Running", 10s));
  world.kit.advance(5s);
  const auto before = world.kit.engine().last_seq();
  world.kit.advance(1h);
  EXPECT_EQ(world.kit.engine().last_seq(), before);
}

}  // namespace
}  // namespace pawl::test
