// SPDX-License-Identifier: Apache-2.0
#include "pawl/supervisor.hpp"

#include <gtest/gtest.h>

#include "tests/supervise/pump.hpp"

using namespace std::chrono_literals;
using pawl::test::line;
using pawl::test::Plant;
using pawl::test::plant_setup;
using pawl::test::pump;
using Strings = std::vector<std::string>;

namespace {

TEST(Supervisor, BringsAWorkerIntoTheStateThatIsDesired) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  kit.supervisor().apply({.children = {pump("a")}}).value();
  ASSERT_TRUE(kit.wait_for("a", "Running"));
  EXPECT_EQ(kit.moves("a"), (Strings{"TryingToStart", "Running"}));
  EXPECT_EQ(plant.motors["a"].starts, 1);
}

TEST(Supervisor, ItsMachinesSayWhoSteersThem) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  for (const auto* machine : kit.engine().definitions()) EXPECT_NE(machine->steered_by, "") << machine->name;
}

TEST(Supervisor, AnIdleWorkerWritesNothing) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  kit.supervisor().apply({.children = {pump("a")}}).value();
  ASSERT_TRUE(kit.wait_for("a", "Running"));
  kit.advance(1s);
  const auto before = kit.engine().last_seq();
  kit.advance(10min);
  EXPECT_EQ(kit.engine().last_seq(), before);
  EXPECT_EQ(kit.supervisor().show("a").value().health, pawl::Health::good);
}

TEST(Supervisor, AParkedWorkerComesToRestAndStaysThereOverACrash) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  kit.supervisor().apply({.children = {pump("a")}}).value();
  ASSERT_TRUE(kit.wait_for("a", "Running"));
  kit.supervisor().park("a").value();
  ASSERT_TRUE(kit.wait_for("a", "Stopped"));
  EXPECT_FALSE(plant.motors["a"].turning);
  kit.crash();
  kit.advance(1min);
  EXPECT_EQ(kit.state("a"), "Stopped");
  kit.supervisor().run("a").value();
  EXPECT_TRUE(kit.wait_for("a", "Running"));
}

TEST(Supervisor, AWorkerThatIsNotNamedAnyMoreIsStoppedAndRemoved) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  kit.supervisor().apply({.children = {pump("a"), pump("b")}}).value();
  ASSERT_TRUE(kit.wait_for("a", "Running"));
  kit.supervisor().remove("a").value();
  ASSERT_TRUE(kit.wait_for("a", ""));
  EXPECT_FALSE(plant.motors["a"].turning);
  EXPECT_EQ(kit.state("b"), "Running");
  kit.crash();
  kit.advance(1min);
  EXPECT_EQ(kit.state("a"), "");
}

TEST(Supervisor, ATreeIsMadeFromTheTopAndRemovedFromTheBottom) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  kit.supervisor().apply({.children = {line("l", R"({"mapped": true})")}}).value();
  ASSERT_TRUE(kit.wait_for("l", "Running"));
  EXPECT_EQ(kit.state("l/pump-1"), "Running");
  EXPECT_EQ(kit.state("l/pump-2"), "Running");
  kit.supervisor().apply({}).value();
  ASSERT_TRUE(kit.wait_for("l", ""));
  EXPECT_EQ(kit.state("l/pump-1"), "");
  EXPECT_FALSE(plant.motors["l/pump-1"].turning);
}

TEST(Supervisor, EverythingGoesOnAfterACrash) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  kit.supervisor().apply({.children = {line("l"), pump("a")}}).value();
  ASSERT_TRUE(kit.wait_for("l", "Running"));
  kit.crash();
  EXPECT_EQ(kit.found().workers, 4U);
  plant.motors["l/pump-2"].turning = false;
  ASSERT_TRUE(kit.wait_until([&] { return plant.motors["l/pump-2"].turning; }));
  EXPECT_TRUE(kit.wait_for("l", "Running"));
  EXPECT_EQ(plant.motors["a"].starts, 1);
}

TEST(Supervisor, AnActionThatACrashCutOffIsRunAgainUnderTheSameNumber) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  plant.while_starting = [&](std::string_view) {
    if (plant.motors["a"].starts == 1) kit.process().crash();
  };
  kit.supervisor().apply({.children = {pump("a")}}).value();
  kit.advance(1s);
  ASSERT_TRUE(kit.process().crashed());
  kit.crash();
  ASSERT_TRUE(kit.wait_for("a", "Running"));
  ASSERT_EQ(plant.motors["a"].orders.size(), 2U);
  EXPECT_EQ(plant.motors["a"].orders[0], plant.motors["a"].orders[1]);
}

TEST(Supervisor, ActionsThatHangDoNotKeepOthersFromTheirs) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  pawl::Gate repaired;
  plant.while_starting = [&](std::string_view path) {
    if (path.starts_with("bad")) (void)kit.process().wait(repaired);
  };
  pawl::TreeSpec tree;
  for (int i = 0; i < 8; ++i) tree.children.push_back(pump("bad-" + std::to_string(i)));
  kit.supervisor().apply(tree).value();
  kit.advance(2s);
  tree.children.push_back(pump("good"));
  kit.supervisor().apply(tree).value();
  kit.advance(2s);
  EXPECT_FALSE(plant.motors["good"].turning) << "all threads are busy";
  EXPECT_TRUE(kit.wait_for("good", "Running"));
  repaired.open();
  EXPECT_TRUE(kit.wait_for("bad-0", "Running"));
}

TEST(Supervisor, AnActionThatCrashesTheProgramEachTimeIsGivenUpAndDecidedAnew) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  plant.while_starting = [&](std::string_view) {
    if (plant.motors["a"].starts <= 4) kit.process().crash();
  };
  kit.supervisor().apply({.children = {pump("a")}}).value();
  kit.advance(1s);
  while (kit.process().crashed()) {
    kit.crash();
    kit.advance(1s);
  }
  ASSERT_TRUE(kit.wait_for("a", "Running"));
  const auto& orders = plant.motors["a"].orders;
  ASSERT_EQ(orders.size(), 5U);
  EXPECT_EQ(orders[3], orders[0]);
  EXPECT_NE(orders[4], orders[0]);
}

TEST(Supervisor, ADrainLetsEverybodyRestChildrenFirst) {
  Plant plant;
  pawl::SupervisorKit kit(plant_setup(plant));
  kit.supervisor().apply({.children = {line("l"), pump("a")}}).value();
  ASSERT_TRUE(kit.wait_for("l", "Running"));
  const auto report = kit.supervisor().drain();
  EXPECT_TRUE(report.clean);
  EXPECT_EQ(kit.state("l"), "Stopped");
  EXPECT_EQ(kit.state("l/pump-1"), "Stopped");
  kit.restart();
  EXPECT_TRUE(kit.wait_for("l", "Running"));
}

}  // namespace
