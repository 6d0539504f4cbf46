// SPDX-License-Identifier: Apache-2.0
// What is desired: versions, refusals, configurations that cannot be read.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

TEST(Desired, EachChangeHasAVersionAndTheSameTreeHasNone) {
  LiftWorld world;
  const auto first = world.supervisor().apply({.children = {lift("a")}}).value();
  EXPECT_EQ(world.supervisor().apply({.children = {lift("a")}}).value(), first);
  EXPECT_EQ(world.supervisor().apply({.children = {lift("b")}}).value(), first + 1);
  EXPECT_EQ(world.supervisor().applied().value().second, first + 1);
  EXPECT_EQ(world.supervisor().applied().value().first.children, std::vector{lift("b")});
}

TEST(Desired, AChangeOfAnOlderVersionIsRefused) {
  LiftWorld world;
  const auto version = world.supervisor().apply({.children = {lift("a")}}).value();
  world.supervisor().apply({.children = {lift("b")}}, version).value();
  const auto late = world.supervisor().apply({.children = {lift("c")}}, version);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::desired_conflict);
  EXPECT_EQ(world.supervisor().applied().value().first.children, std::vector{lift("b")});
  const auto same = world.supervisor().apply({.children = {lift("b")}}, version);
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().code(), Code::desired_conflict);
}

TEST(Desired, TheVersionSurvivesACrash) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  const auto version = world.supervisor().apply({.children = {lift("a", R"({"level": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  const auto of_child = world.show("a").desired_version;
  world.kit.crash();
  EXPECT_EQ(world.supervisor().applied().value().second, version);
  EXPECT_EQ(world.show("a").desired_version, of_child);
}

TEST(Desired, UpsertsOfManyPeopleAreAllKept) {
  LiftWorld world;
  for (int i = 0; i < 5; ++i) world.supervisor().upsert(lift("a" + std::to_string(i))).value();
  world.supervisor().upsert(lift("a2", R"({"level": 7})")).value();
  world.supervisor().remove("a3").value();
  EXPECT_EQ(world.supervisor().applied().value().first.children.size(), 4U);
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a2").level == 7; }));
}

TEST(Desired, RemovingWhatIsNotThereIsRefused) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 1})")}}).value();
  EXPECT_EQ(world.supervisor().remove("x").error().code(), Code::unknown_instance);
  EXPECT_EQ(world.supervisor().remove("p/c1").error().code(), Code::invalid_argument);
  EXPECT_EQ(world.supervisor().park("x").error().code(), Code::unknown_instance);
  EXPECT_EQ(world.supervisor().show("x").error().code(), Code::unknown_instance);
}

void expect_tree_refused(LiftWorld& world, const TreeSpec& tree, Code code, std::string_view worker) {
  const auto version = world.supervisor().applied().value().second;
  const auto checked = world.supervisor().check(tree);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), code) << checked.error().to_string();
  EXPECT_EQ(checked.error().field("worker"), worker);
  const auto applied = world.supervisor().apply(tree);
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().to_string(), checked.error().to_string());
  EXPECT_EQ(world.supervisor().applied().value().second, version);
}

TEST(Desired, ATreeOfWhichAnyPartIsInvalidChangesNothing) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  expect_tree_refused(world, {.children = {lift("b"), lift("")}}, Code::spec_invalid, "");
  expect_tree_refused(world, {.children = {lift("b"), lift("b/c")}}, Code::spec_invalid, "b/c");
  expect_tree_refused(world, {.children = {lift("..")}}, Code::spec_invalid, "..");
  expect_tree_refused(world, {.children = {lift(std::string(64, 'x'))}}, Code::spec_invalid,
                      std::string(63, 'x'));
  expect_tree_refused(world, {.children = {lift("b"), lift("b")}}, Code::spec_invalid, "b");
  expect_tree_refused(world, {.children = {{.name = "b", .worker_type = "left"}}}, Code::unknown_worker_type,
                      "b");
  expect_tree_refused(world, {.children = {{.name = "b", .worker_type = ""}}}, Code::unknown_worker_type,
                      "b");
  auto variable = lift("b");
  variable.user_spec.variables.user["global"] = {"1"};
  expect_tree_refused(world, {.children = {variable}}, Code::spec_invalid, "b");
  auto mapping = lift("b");
  mapping.state_mapping = {{"Jumping", "run"}};
  expect_tree_refused(world, {.children = {mapping}}, Code::spec_invalid, "b");
  mapping.state_mapping = {{"Running", "TryingToRise"}};
  expect_tree_refused(world, {.children = {mapping}}, Code::spec_invalid, "b");
  world.kit.advance(5s);
  EXPECT_EQ(world.supervisor().tree().size(), 1U);
}

TEST(Desired, AnUnknownTypeIsNamedWithTheKnownOnesAndTheNearest) {
  LiftWorld world;
  const auto refused = world.supervisor().check({.children = {{.name = "b", .worker_type = "left"}}});
  ASSERT_FALSE(refused);
  const auto text = refused.error().to_string();
  EXPECT_NE(text.find("did you mean lift?"), std::string::npos) << text;
}

TEST(Desired, AConfigurationThatCannotBeReadIsShownAndTheLastGoodOneGoesOn) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"level": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().upsert(lift("a", R"({"level": -1})")).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").health == Health::config_error; }));
  EXPECT_NE(world.show("a").problem.find("a level is at least 0"), std::string::npos);
  EXPECT_EQ(world.show("a").state, "Up");
  world.site("a").level = 0;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").level == 2; }));
  EXPECT_EQ(world.show("a").health, Health::config_error);
  world.supervisor().upsert(lift("a", R"({"level": 3})")).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").level == 3; }));
  EXPECT_TRUE(world.kit.wait_until([&] { return world.show("a").health == Health::good; }));
}

TEST(Desired, AWorkerWhoseFirstConfigurationCannotBeReadWaitsForABetterOne) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"level": "high"})"), lift("b")}}).value();
  world.kit.advance(1min);
  EXPECT_EQ(world.show("a").health, Health::config_error);
  EXPECT_EQ(world.site("a").looks, 0);
  EXPECT_EQ(world.show("b").state, "Up");
  EXPECT_EQ(world.supervisor().stats().config_errors, 1U);  // it is not read again and again
  world.supervisor().upsert(lift("a")).value();
  EXPECT_TRUE(world.comes_to("a", "Up"));
}

TEST(Desired, WhatDerivingThrowsIsAConfigurationError) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift("a", R"({"mode": "throws when it derives"})"), lift("b")}})
      .value();
  ASSERT_TRUE(world.comes_to("b", "Up"));
  EXPECT_EQ(world.show("a").health, Health::config_error);
  EXPECT_NE(world.show("a").problem.find("the plan is broken"), std::string::npos);
  world.supervisor().remove("a").value();
  EXPECT_TRUE(world.comes_to("a", ""));
}

TEST(Desired, AMissingVariableIsNamedWithItsPlace) {
  LiftWorld world;
  auto spec = lift("a", R"({"variable": "{{ .PORTT }}"})");
  spec.user_spec.variables.user["PORT"] = {"1"};
  world.supervisor().apply({.children = {spec}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.kit.state("a") == "Down"; }));
  EXPECT_NE(world.show("a").problem.find("PORT"), std::string::npos) << world.show("a").problem;
  EXPECT_EQ(world.show("a").health, Health::config_error);
}

TEST(Desired, AValueOfAVariableIsNeverTakenForSyntax) {
  for (const std::string value : {R"(x", "level": 9, "mode": "y)", R"(\)", "a\nb", "{{ .V }}", R"(\u0041)"}) {
    LiftWorld world;
    auto spec = lift("a", R"({"variable": "<{{ .V }}>"})");
    spec.user_spec.variables.user["V"] = {encode(value).value()};
    world.supervisor().apply({.children = {spec}}).value();
    ASSERT_TRUE(world.comes_to("a", "Up")) << world.show("a").problem;
    const auto desired = JsonDocument::parse(world.show("a").desired.text).value();
    EXPECT_EQ(desired.root().find("variable")->as_string(), "<" + value + ">");
    EXPECT_EQ(desired.root().find("level")->as_integer(), 1);
  }
}

TEST(Desired, AVariableOutsideOfQuotesKeepsItsType) {
  LiftWorld world;
  auto spec =
      lift("a", R"({"level": {{ .N }}, "child_parked": {{ .B }}, "mode": {{ .S }}, "variable": "{{ .N }}"})");
  spec.user_spec.variables.user = {{"N", {"5"}}, {"B", {"true"}}, {"S", {R"("5")"}}};
  world.supervisor().apply({.children = {spec}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up")) << world.show("a").problem;
  const auto text = world.show("a").desired.text;
  EXPECT_NE(text.find(R"("level":5,"mode":"5")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("child_parked":true,"variable":"5")"), std::string::npos) << text;
}

TEST(Desired, IsTheSameInTheNextRunOfTheProgramWhateverVariablesAreInIt) {
  LiftWorld world;
  auto spec = lift("a", R"({"variable": "{{ .internal.timestamp }} {{ .internal.created_at }}"})");
  world.supervisor().apply({.children = {spec}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  const auto before = world.show("a").desired.text;
  world.kit.advance(1h);
  world.kit.restart();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.show("a").desired.text, before);
  spec.user_spec.config =
      R"({"level": 2, "variable": "{{ .internal.timestamp }} {{ .internal.created_at }}"})";
  world.supervisor().apply({.children = {spec}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").level == 2; }));
  const auto after = JsonDocument::parse(world.show("a").desired.text).value();
  const auto first = JsonDocument::parse(before).value();
  EXPECT_NE(after.root().find("variable")->as_string(), first.root().find("variable")->as_string());
}

TEST(Desired, OfAChildHasNoInternalVariableOfItsParentInIt) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift(
                  "p", R"({"children": 1, "child_config": "{\"variable\": \"{{ .internal.id }}\"}"})")}})
      .value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p").health == Health::config_error; }, 10s));
  EXPECT_NE(world.show("p").problem.find("internal variables are not stored"), std::string::npos)
      << world.show("p").problem;
  EXPECT_FALSE(world.supervisor().show("p/c1"));
}

TEST(Desired, HealthIsFailingWhileTheActionForItFails) {
  LiftWorld world;
  world.site("a").fails = 3;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raises == 1; }));
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures > 0; }));
  EXPECT_EQ(enum_name(world.show("a").health), "failing");
  EXPECT_NE(world.show("a").problem, "");
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.show("a").health, Health::good);
}

TEST(Desired, AnErrorInAConfigurationHasItsLine) {
  SupervisorKitOptions options;
  options.supervisor.read_config = [](std::string_view text) -> Result<ConfigDocument> {
    return ConfigDocument{.json = std::string(text), .lines = {{"$.level", 7}}};
  };
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a", R"({"level": -5})")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.kit.state("a") == "Down"; }));
  EXPECT_NE(world.show("a").problem.find("line=7"), std::string::npos) << world.show("a").problem;
}

TEST(Desired, WhatPeopleAskForIsKeptWhenTheConfigurationChanges) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().park("a").value();
  world.supervisor().upsert(lift("a", R"({"level": 4})")).value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  world.kit.advance(1min);
  EXPECT_EQ(world.show("a").state, "Down");
  EXPECT_EQ(world.show("a").intent, Intent::park);
  world.supervisor().run("a").value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.site("a").level, 4);
}

TEST(Desired, AChangeArrivesAlsoWhereTheWorkerIsJustBusy) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SupervisorKitOptions options;
    options.simulation.seed = seed;
    options.simulation.job_delay_max = 30ms;
    LiftWorld world(options);
    TreeSpec tree;
    for (int i = 0; i < 5; ++i) tree.children.push_back(lift("a" + std::to_string(i)));
    world.supervisor().apply(tree).value();
    for (int level = 2; level < 8; ++level) {
      world.kit.advance(Duration(world.kit.simulation().draw(200'000)));
      for (auto& child : tree.children)
        child.user_spec.config = R"({"level": )" + std::to_string(level) + "}";
      world.supervisor().apply(tree).value();
    }
    ASSERT_TRUE(world.kit.wait_until(
        [&] {
          const auto now = world.supervisor().tree();
          return now.size() == 5 && std::ranges::all_of(now, [](const auto& view) {
                   return view.desired.text.contains(R"("level":7)");
                 });
        },
        30s))
        << "seed " << seed;
  }
}

TEST(Desired, IsDerivedOncePerChangeOfASpecificationAndNotAtATick) {
  static int derived;
  static Result<std::shared_ptr<const void>> (*derive)(std::string_view);
  SupervisorKitOptions options;
  options.supervisor.strict = true;
  LiftWorld world(options, [](WorkerTypes& types, Lab& lab, Runtime& runtime) {
    auto type = lift_type(lab, runtime, "counted");
    derive = type.derive;
    type.derive = [](std::string_view json) { return ++derived, derive(json); };
    types.add(std::move(type));
  });
  derived = 0;
  auto spec = lift("a", R"({"variable": "{{ .global.site }}"})");
  spec.worker_type = "counted";
  TreeSpec tree{.children = {spec}};
  tree.variables.global["site"] = {R"("north")"};
  world.supervisor().apply(tree).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.kit.advance(1min);
  world.supervisor().apply(tree).value();
  world.supervisor().upsert(lift("other")).value();
  ASSERT_TRUE(world.comes_to("other", "Up"));
  EXPECT_EQ(derived, 1);
  tree = world.supervisor().applied().value().first;
  tree.children[0].user_spec.config = R"({"level": 2, "variable": "{{ .global.site }}"})";
  world.supervisor().apply(tree).value();
  world.kit.advance(1min);
  EXPECT_EQ(derived, 2);
  tree.variables.global["site"] = {R"("south")"};
  world.supervisor().apply(tree).value();
  world.kit.advance(1min);
  EXPECT_EQ(derived, 3);
  EXPECT_TRUE(world.show("a").desired.text.contains("south"));
}

}  // namespace
}  // namespace pawl::test
