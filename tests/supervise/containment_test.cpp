// SPDX-License-Identifier: Apache-2.0
// Whatever a worker returns or throws is contained and reported, and other workers go on.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

ChildSpec of_type(std::string type, std::string name) {
  auto made = lift(std::move(name));
  made.worker_type = std::move(type);
  return made;
}

TEST(Containment, WhatIsThrownNeedNotBeAnException) {
  LiftWorld world;
  std::vector<ChildSpec> all{lift("good")};
  for (const auto* where : {"next", "derive", "children", "collect", "run", "stop"})
    all.push_back(lift(where, std::string(R"({"mode": "throws 42 in )") + where + "\"}"));
  world.supervisor().apply({.children = all}).value();
  ASSERT_TRUE(world.comes_to("stop", "Up"));
  world.supervisor().park("stop").value();
  world.kit.advance(30s);
  for (const auto* where : {"next", "derive", "children", "collect", "run", "stop"})
    EXPECT_TRUE(world.show(where).problem.contains("an object that is not a std::exception"))
        << where << ": " << world.show(where).problem;
  EXPECT_EQ(world.kit.state("good"), "Up");
}

TEST(Containment, ReasonsAndErrorsThatAreNoTextAreStoredAllTheSame) {
  LiftWorld world;
  world.site("a").fails = 1;
  world.site("a").mumbles = true;
  world.supervisor().apply({.children = {lift("a", R"({"mode": "mumbles"})")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 1; }, 10s));
  EXPECT_EQ(world.show("a").problem, "the m\uFFFDtor does not start");
  EXPECT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.log.with("a worker has moved").front().fields.at("worker"), "(top)");
  bool said = false;
  for (const auto& line : world.log.with("a worker has moved"))
    said = said || line.fields.at("reason") == "it is w\uFFFD\uFFFDnted";
  EXPECT_TRUE(said);
}

TEST(Containment, AnAnswerBeyondTheListOfStatesOrActionsIsRefused) {
  LiftWorld world({}, [](WorkerTypes& types, Lab& lab, Runtime& runtime) {
    auto leaps = lift_type(lab, runtime, "leaps");
    leaps.decide = [](std::size_t, bool, const SnapshotParts&) -> Result<Decision> {
      return Decision{.kind = Decision::Kind::go, .target = 99, .reason = "far away"};
    };
    types.add(std::move(leaps));
    auto juggles = lift_type(lab, runtime, "juggles");
    juggles.decide = [](std::size_t, bool, const SnapshotParts&) -> Result<Decision> {
      return Decision{.kind = Decision::Kind::act, .target = 2, .reason = "one more ball"};
    };
    types.add(std::move(juggles));
  });
  world.supervisor()
      .apply({.children = {of_type("leaps", "leaps"), of_type("juggles", "juggles"), lift("good")}})
      .value();
  world.kit.advance(10s);
  for (const auto* name : {"leaps", "juggles"}) {
    EXPECT_EQ(world.show(name).health, Health::open) << name;
    EXPECT_EQ(world.kit.state(name), "Down") << name;
  }
  EXPECT_TRUE(world.show("leaps").problem.contains("number 99 of 5 states")) << world.show("leaps").problem;
  EXPECT_TRUE(world.show("juggles").problem.contains("number 2 of 2 actions"))
      << world.show("juggles").problem;
  EXPECT_EQ(world.kit.state("good"), "Up");
}

TEST(Containment, ToolsThatAreNoneAreAClearFailure) {
  LiftWorld world({}, [](WorkerTypes& types, Lab& lab, Runtime& runtime) {
    auto type = lift_type(lab, runtime, "bare");
    type.make_tools = [](const WorkerIdentity&) -> Result<std::shared_ptr<void>> {
      return std::shared_ptr<void>();
    };
    types.add(std::move(type));
  });
  world.supervisor().apply({.children = {of_type("bare", "a"), lift("good")}}).value();
  world.kit.advance(5s);
  EXPECT_TRUE(world.show("a").problem.contains("returned a null pointer")) << world.show("a").problem;
  EXPECT_EQ(world.kit.state("good"), "Up");
}

TEST(Containment, MakingToolsMayThrowWhateverMakesThem) {
  LiftWorld world({}, [](WorkerTypes& types, Lab& lab, Runtime& runtime) {
    auto type = lift_type(lab, runtime, "clumsy");
    type.make_tools = [](const WorkerIdentity&) -> Result<std::shared_ptr<void>> { throw 42; };
    types.add(std::move(type));
  });
  world.supervisor().apply({.children = {of_type("clumsy", "a"), lift("good")}}).value();
  world.kit.advance(5s);
  EXPECT_TRUE(world.show("a").problem.contains("creating its tools threw")) << world.show("a").problem;
  EXPECT_EQ(world.kit.state("good"), "Up");
}

TEST(Containment, ATypeWithMoreActionsThanCanBeToldApartIsRefused) {
  Lab lab;
  sim::Simulation simulation;
  auto type = lift_type(lab, simulation.spawn("program"), "busy");
  type.actions.resize(WorkerType::kActionsMax);
  EXPECT_TRUE(WorkerTypes().add(type).validate());
  type.actions.resize(WorkerType::kActionsMax + 1);
  EXPECT_EQ(WorkerTypes().add(type).validate().error().code(), Code::spec_invalid);
}

// What another release of the program has stored.

TEST(Containment, AWorkerInAStateThatItsTypeDoesNotHaveIsLeftAloneAndNamed) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 1})"), lift("good")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor().park("good").value();
  ASSERT_TRUE(world.comes_to("good", "Down"));
  const auto stored = world.kit.engine().read("worker_lift", "p").value();
  world.kit.crash_and_change([&world](Runtime& runtime) {
    auto type = lift_type(world.lab, runtime, "lift");
    type.states[*type.machine.find_state("Up")].name = "Raised";
    for (auto& state : type.machine.states) {
      if (state.name == "Up") state.name = "Raised";
    }
    WorkerTypes types;
    types.add(std::move(type));
    return types;
  });
  EXPECT_EQ(world.kit.found().unknown, (std::vector<std::string>{"p", "p/c1"}));
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("p"), "");
  EXPECT_EQ(world.kit.state("good"), "Down");
  EXPECT_EQ(world.kit.engine().read("worker_lift", "p").value().version, stored.version);
  EXPECT_FALSE(
      world.log.with("a worker is in a state that its type does not have; it is not supervised").empty());
  EXPECT_TRUE(world.log.with("a child could not be created").front().fields.at("error").contains("\"Up\""));
}

}  // namespace
}  // namespace pawl::test
