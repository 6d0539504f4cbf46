// SPDX-License-Identifier: Apache-2.0
// Parents and children: made, changed, mapped, removed; and who comes back under an old name.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {

namespace {

constexpr const char* kThreeLevels =
    R"({"children": 2, "child_config": "{\"children\": 2, \"child_config\": \"{\\\"level\\\": 3}\"}"})";

TEST(ChildWorkers, ThreeLevelsAreMadeWithTheirPaths) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", kThreeLevels)}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  std::vector<std::string> paths;
  for (const auto& view : world.supervisor().tree()) {
    paths.push_back(view.identity.path);
    EXPECT_EQ(view.state, "Up");
  }
  EXPECT_EQ(paths,
            (std::vector<std::string>{"p", "p/c1", "p/c1/c1", "p/c1/c2", "p/c2", "p/c2/c1", "p/c2/c2"}));
  EXPECT_EQ(world.show("p/c1").identity.parent, "p");
  EXPECT_EQ(world.show("p").child_paths, (std::vector<std::string>{"p/c1", "p/c2"}));
  EXPECT_EQ(world.show("p").children_healthy, 2U);
}

TEST(ChildWorkers, AFailingChildDoesNotHoldUpItsSiblings) {
  LiftWorld world;
  world.site("p/c1").fails = 1'000'000;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p/c2", "Up"));
  ASSERT_TRUE(world.comes_to("p", "Sagging"));
  world.site("p/c1").fails = 0;
  EXPECT_TRUE(world.comes_to("p", "Up"));
}

TEST(ChildWorkers, AnExplicitlyEmptySetRemovesThem) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p/c2", "Up"));
  world.supervisor().upsert(lift("p", R"({"children": 1})")).value();
  ASSERT_TRUE(world.comes_to("p/c2", ""));
  EXPECT_EQ(world.site("p/c2").level, 0);
  EXPECT_EQ(world.kit.state("p/c1"), "Up");
}

TEST(ChildWorkers, AListThatCannotBeUsedKeepsTheChildren) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p/c2", "Up"));
  for (const auto* config :
       {R"({"mode": "throws when it names its children"})", R"({"children": 1, "child_type": "left"})",
        R"({"children": 1, "child_mapping": {"Jumping": "run"}})", R"({"level": -1})"}) {
    world.supervisor().upsert(lift("p", config)).value();
    ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p").health == Health::config_error; }))
        << config;
    world.kit.advance(5s);
    EXPECT_EQ(world.kit.state("p/c1"), "Up") << config;
    EXPECT_EQ(world.kit.state("p/c2"), "Up") << config;
    world.kit.crash();
    world.kit.advance(5s);
    EXPECT_EQ(world.kit.state("p/c1"), "Up") << config;
    EXPECT_EQ(world.kit.state("p/c2"), "Up") << config;
    EXPECT_EQ(world.show("p").health, Health::config_error) << config;
    world.supervisor().upsert(lift("p", R"({"children": 2})")).value();
    ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p").health == Health::good; })) << config;
  }
}

TEST(ChildWorkers, AParentThatCannotBeReadIsRemovedWithItsChildren) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor().upsert(lift("p", R"({"level": -1})")).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p").health == Health::config_error; }));
  world.kit.crash();
  world.supervisor().remove("p").value();
  ASSERT_TRUE(world.kit.wait_for("p", "", 1min));
  EXPECT_EQ(world.supervisor().tree().size(), 0U);
  EXPECT_EQ(world.site("p/c1").level, 0);
}

TEST(ChildWorkers, AChildOfAnotherTypeTakesThePlaceOfTheFormerWhenThatIsGone) {
  LiftWorld world;
  auto both = [&world](Runtime& runtime) {
    auto types = world.setup()(runtime);
    types.add(lift_type(world.lab, runtime, "lever"));
    return types;
  };
  world.kit.crash_and_change(both);
  world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  auto lever = lift("a");
  lever.worker_type = "lever";
  world.supervisor().upsert(lever).value();
  ASSERT_TRUE(world.kit.wait_until([&] {
    const auto found = world.supervisor().show("a");
    return found && found->identity.type == "lever" && found->state == "Up";
  }));
  EXPECT_EQ(world.site("a").lowers, 1);
  EXPECT_EQ(world.supervisor().tree().size(), 2U);
}

TEST(ChildWorkers, OneThatIsWantedAgainWhileItGoesStaysOrComesBack) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SupervisorKitOptions options;
    options.simulation.seed = seed;
    options.simulation.job_delay_max = 20ms;
    LiftWorld world(options);
    world.supervisor().apply({.children = {lift("a")}}).value();
    ASSERT_TRUE(world.comes_to("a", "Up"));
    world.supervisor().apply({}).value();
    world.kit.advance(Duration(world.kit.simulation().draw(2'500'000)));
    world.supervisor().apply({.children = {lift("a")}}).value();
    ASSERT_TRUE(world.kit.wait_for("a", "Up", 1min)) << "seed " << seed;
    world.kit.advance(10s);
    EXPECT_EQ(world.kit.state("a"), "Up") << "seed " << seed;
  }
}

TEST(ChildWorkers, ThoseOfAParentThatIsWantedAgainComeBack) {
  LiftWorld world;
  const TreeSpec tree{.children = {lift("p", R"({"children": 1})")}};
  world.supervisor().apply(tree).value();
  ASSERT_TRUE(world.comes_to("p/c1", "Up"));
  world.site("p/c1").stuck = true;
  world.supervisor().apply({}).value();
  ASSERT_TRUE(world.comes_to("p/c1", "TryingToLower"));
  world.supervisor().apply(tree).value();
  world.site("p/c1").stuck = false;
  EXPECT_TRUE(world.comes_to("p/c1", "Up"));
}

TEST(ChildWorkers, AWorkerMadeAgainUnderTheSamePathBeginsFresh) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"level": 5})")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  const auto created = world.show("a").identity.created_at;
  world.supervisor().remove("a").value();
  ASSERT_TRUE(world.comes_to("a", ""));
  world.site("a").look_hangs = true;
  world.supervisor().upsert(lift("a", R"({"level": 2})")).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.kit.state("a") == "Down"; }));
  world.kit.advance(3s);
  const auto view = world.show("a");
  EXPECT_EQ(view.observed.text, "null");
  EXPECT_EQ(view.health, Health::unobserved);
  EXPECT_EQ(view.intent, Intent::run);  // nobody has asked this one to be parked
  EXPECT_EQ(view.desired_version, 1);
  EXPECT_GT(view.identity.created_at, created);
  EXPECT_EQ(world.kit.engine().read("worker_lift", "a").value().generation, 2);
  EXPECT_TRUE(world.kit.moves("a").empty());
}

TEST(ChildWorkers, OneThatRemovedItselfIsNotMadeAgainFromTheSameSpecButFromAnother) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"mode": "removes"})"), lift("b")}}).value();
  ASSERT_TRUE(world.comes_to("b", "Up"));
  ASSERT_TRUE(world.comes_to("a", ""));
  EXPECT_EQ(world.site("a").raises, 1);
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("a"), "");
  world.kit.crash();
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("a"), "");
  world.supervisor().upsert(lift("b", R"({"level": 2})")).value();
  world.kit.advance(10s);
  EXPECT_EQ(world.kit.state("a"), "");
  world.supervisor().upsert(lift("a", R"({"level": 3})")).value();
  EXPECT_TRUE(world.comes_to("a", "Up"));
}

TEST(ChildWorkers, AParentThatRemovesItselfTakesItsChildrenWithItFirst) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor().upsert(lift("p", R"({"children": 2, "mode": "removes"})")).value();
  ASSERT_TRUE(world.comes_to("p", ""));
  EXPECT_EQ(world.supervisor().tree().size(), 0U);
  EXPECT_EQ(world.site("p/c1").level, 0);
}

TEST(ChildWorkers, AParentThatThinksBetterOfItsRemovalHasItsChildrenAgain) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.site("p/c1").stuck = true;
  world.supervisor().upsert(lift("p", R"({"children": 2, "mode": "removes"})")).value();
  ASSERT_TRUE(world.comes_to("p/c2", ""));
  world.supervisor().upsert(lift("p", R"({"children": 2})")).value();
  world.kit.advance(2s);
  world.site("p/c1").stuck = false;
  ASSERT_TRUE(world.comes_to("p/c2", "Up"));
  EXPECT_TRUE(world.comes_to("p/c1", "Up"));
}

TEST(ChildWorkers, ADisabledChildIsThereAtRest) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 1, "child_parked": true})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Sagging"));
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("p/c1"), "Down");
  EXPECT_EQ(world.show("p/c1").intent, Intent::park);
  world.supervisor().upsert(lift("p", R"({"children": 1})")).value();
  EXPECT_TRUE(world.comes_to("p/c1", "Up"));
}

TEST(ChildWorkers, AChildIsEnabledUnlessSaidOtherwise) { EXPECT_TRUE(ChildSpec{}.enabled); }

TEST(ChildWorkers, TheParentsStateIsMappedToWhatTheChildShouldBe) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift("p", R"({"children": 1, "child_mapping": {"down": "park", "UP": "up",
                                          "TryingToLower": "Down"}})")}})
      .value();
  ASSERT_TRUE(world.comes_to("p/c1", "Up"));
  world.supervisor().park("p").value();
  ASSERT_TRUE(world.comes_to("p/c1", "Down"));
  EXPECT_EQ(world.show("p/c1").intent, Intent::park);
  world.kit.crash();
  world.kit.advance(10s);
  EXPECT_EQ(world.kit.state("p/c1"), "Down");
  world.supervisor().run("p").value();
  ASSERT_TRUE(world.comes_to("p/c1", "Up"));
}

TEST(ChildWorkers, AStateThatIsNotMappedChangesNothing) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift("p", R"({"children": 1, "child_mapping": {"Down": "park"}})")}})
      .value();
  ASSERT_TRUE(world.comes_to("p", "Sagging"));
  world.kit.advance(1min);
  EXPECT_EQ(world.kit.state("p/c1"), "Down");  // as in Down, which was the last that is named
  world.supervisor().upsert(lift("p", R"({"children": 1})")).value();
  EXPECT_TRUE(world.comes_to("p/c1", "Up"));  // without a mapping it follows itself again
}

TEST(ChildWorkers, AMappingWithoutTheFirstStatesLetsTheChildRun) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift("p", R"({"children": 1, "child_mapping": {"TryingToLower": "park"}})")}})
      .value();
  EXPECT_TRUE(world.comes_to("p/c1", "Up"));
}

TEST(ChildWorkers, VariablesAreHandedDownThreeLevelsAndTheNearestWins) {
  LiftWorld world;
  auto parent = lift("p", R"({"children": 1, "variable": "{{ .NAME }}", "child_config":
      "{\"variable\": \"{{ "{{" }} .NAME }} of {{ "{{" }} .global.site }}\"}"})");
  parent.user_spec.variables.user["NAME"] = {R"("near")"};
  TreeSpec tree{.children = {parent}, .variables = {.user = {{"NAME", {R"("far")"}}, {"PORT", {"1883"}}}}};
  tree.variables.global["site"] = {R"("north")"};
  world.supervisor().apply(tree).value();
  ASSERT_TRUE(world.comes_to("p/c1", "Up")) << world.show("p").problem << world.supervisor().tree().size();
  const auto child = world.show("p/c1");
  EXPECT_EQ(child.spec.variables.user.at("NAME").text, R"("near")");
  EXPECT_EQ(child.spec.variables.user.at("PORT").text, "1883");
  EXPECT_NE(child.desired.text.find("near of north"), std::string::npos) << child.desired.text;
  tree.variables.global["site"] = {R"("south")"};
  world.supervisor().apply(tree).value();
  EXPECT_TRUE(
      world.kit.wait_until([&] { return world.show("p/c1").desired.text.contains("near of south"); }));
}

TEST(ChildWorkers, AParentSeesAChildsStateAndReasonAsTheyAreNow) {
  // Read after the child has moved on: the view must not keep what is gone.
  std::vector<TraceEntry> seen;
  SupervisorKitOptions options;
  options.supervisor.strict = true;
  options.supervisor.trace = [&seen](const TraceEntry& entry) { seen.push_back(entry); };
  LiftWorld world(options);
  world.site("p/c1").fails = 3;
  world.supervisor().apply({.children = {lift("p", R"({"children": 1})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  bool raising = false;
  for (const auto& entry : seen) {
    if (entry.path != "p") continue;
    for (const auto& child : entry.children) {
      EXPECT_TRUE(child.reason.empty() || child.reason.find("it ") == 0 || child.reason.find("all") == 0)
          << child.reason;
      raising = raising || child.reason == "it stands at level 0";
    }
  }
  EXPECT_TRUE(raising);
}

TEST(ChildWorkers, ATreeDeeperThanAllowedIsCutThere) {
  SupervisorKitOptions options;
  options.supervisor.depth_max = 2;
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("p", kThreeLevels)}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  EXPECT_EQ(world.supervisor().tree().size(), 3U);
}

TEST(ChildWorkers, OneThatCannotBeMadeIsTriedAgainLaterAndOthersGoOn) {
  LiftWorld world(exact());
  // Somebody has made an instance by hand that stands in the way.
  WorkerData stray{.name = "c1", .type = "lift", .parent = "nobody"};
  world.kit.engine()
      .commit(Transaction{}.operation({.kind = Operation::Kind::create,
                                       .machine = "worker_lift",
                                       .key = "p/c1",
                                       .json = encode(stray).value()}))
      .value();
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p/c2", "Up"));
  EXPECT_EQ(world.kit.state("p/c1"), "");
  // The parent is looked at for other reasons meanwhile; the child must not be forgotten over that.
  world.site("p/c2").level = 0;
  world.kit.advance(3s);
  world.kit.engine()
      .commit(Transaction{}.operation({.machine = "worker_lift",
                                       .key = "p/c1",
                                       .event = "Removed",
                                       .json = encode(worker_event::Removed{.reason = "by hand"}).value()}))
      .value();
  EXPECT_TRUE(world.kit.wait_for("p/c1", "Up", 2min));
}

}  // namespace
}  // namespace pawl::test
