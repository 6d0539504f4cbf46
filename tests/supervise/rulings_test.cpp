// SPDX-License-Identifier: Apache-2.0
// The rulings on what the specification leaves open, each as a test; where the compiler enforces one, the
// test checks the fact that does.
// tests/supervise/numbered_tests.py checks that there is one for each number.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>
#include <type_traits>
#include <variant>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

struct PlainObserved {
  int seen = 0;
};
struct PlainDesired {
  int wanted = 1;
};

/// As small as a worker can be; it goes to rest directly.
struct MqttClientWorker : Worker<PlainObserved, PlainDesired> {
  struct Off : phase::Stopped {};
  struct Starting : phase::Starting {};
  struct On : phase::Running {};
  using States = pawl::States<Off, Starting, On>;
  static Next<Go<Starting>> next(Off, const Snapshot&) { return Go<Starting>{"wanted"}; }
  static Next<Go<On>> next(Starting, const Snapshot&) { return Go<On>{"done"}; }
  static Next<Stay> next(On, const Snapshot&) { return Stay{"on"}; }
  template <class State>
  static Next<Go<Off>> stop(State, const Snapshot&) {
    return Go<Off>{"to stop"};
  }
  static Result<PlainObserved> collect(NoTools&, const PlainDesired& desired, const CollectContext&) {
    return PlainObserved{desired.wanted};
  }
};
struct NamedWorker : MqttClientWorker {
  static constexpr std::string_view kType = "mqtt_client";
};

TEST(Rulings, C01_LivenessIsNotWritten) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.kit.advance(2s);
  const auto before = world.kit.engine().last_seq();
  const auto looks = world.site("a").looks;
  world.kit.advance(5min);
  EXPECT_EQ(world.kit.engine().last_seq(), before);
  EXPECT_EQ(world.site("a").looks, looks + 300);
  EXPECT_EQ(world.show("a").health, Health::good);
  EXPECT_EQ(world.show("a").collector_restarts, 0U);
}

TEST(Rulings, C02_AnAnswerIsOneThing) {
  using Answer = std::remove_cvref_t<decltype(std::declval<Next<Go<Lift::Up>, Do<Lift::Raise>>>().result())>;
  static_assert(std::is_same_v<Answer, std::variant<Go<Lift::Up>, Do<Lift::Raise>>>);
  static_assert(!std::is_constructible_v<Next<Go<Lift::Up>>, Do<Lift::Raise>>);
  static_assert(!std::is_constructible_v<Next<Go<Lift::Up>>, Go<Lift::Down>>);
  // What comes to a machine from elsewhere is refused, and nothing is changed.
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  const auto refused = world.kit.engine().commit(Transaction{}.operation(
      {.machine = "worker_lift",
       .key = "a",
       .event = "Moved",
       .json = encode(worker_event::Moved{.to = "Down", .reason = "by hand"}).value()}));
  EXPECT_FALSE(refused);
  world.kit.advance(5s);
  EXPECT_EQ(world.kit.state("a"), "Up");
}

TEST(Rulings, C03_ActionsBackOff) {
  LiftWorld world;
  world.site("a").fails = 1'000'000;
  world.supervisor().apply({.children = {lift("a")}}).value();
  world.kit.advance(60s);
  EXPECT_LE(world.site("a").raises, 12);  // ten a second without
  EXPECT_GE(world.site("a").raises, 4);
  EXPECT_GE(world.show("a").failures, 4U);
}

TEST(Rulings, C04_DecisionsAreMadeByOneThread) {
  std::set<std::thread::id> deciding;
  SupervisorKitOptions options;
  options.supervisor.trace = [&deciding](const TraceEntry&) { deciding.insert(std::this_thread::get_id()); };
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("p", R"({"children": 3})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  EXPECT_EQ(deciding, std::set{std::this_thread::get_id()});
}

TEST(Rulings, C05_TicksReadTheLatestObservation) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a"), lift("b")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.site("a").look_takes = 2s;
  world.kit.advance(5s);
  const auto before = world.site("b").looks;
  world.kit.advance(10s);
  EXPECT_GE(world.site("b").looks - before, 10);
  EXPECT_LE(*world.show("a").observed_ago, 2100ms);
}

TEST(Rulings, C06_ActingAndMovingAreSeparate) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  const auto history = world.kit.engine().history("worker_lift", "a", 0, 100).value();
  for (const auto& event : history.events) {
    if (event.event != "Ordered" && event.event != "Ended") continue;
    EXPECT_EQ(event.state, "TryingToRise");
  }
}

TEST(Rulings, C07_OnlyALaterObservationCounts) {
  LiftWorld world;
  world.site("a").takes = 1500ms;
  world.site("a").look_takes = 1s;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.site("a").raises, 1);
}

TEST(Rulings, C08_RestartIsAFreshInstance) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().restart("a", "somebody asked").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").incarnation == 2; }));
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.lab.made, 2);
  EXPECT_EQ(SupervisorOptions{}.restart_within, 30s);
}

struct WithLifecycle {
  bool should_run = false;
};

TEST(Rulings, C09_TheLifecycleIsTheSupervisors) {
  static_assert(detail::names_lifecycle<WithLifecycle>());
  static_assert(!detail::names_lifecycle<LiftDesired>());
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.supervisor().park("a").value();
  EXPECT_EQ(world.show("a").intent, Intent::park);
  EXPECT_EQ(world.show("a").desired_version, 1);  // what is desired has not changed
}

TEST(Rulings, C10_RunParkAndRemoveAreThreeIntents) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.show("a").intent, Intent::run);
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  EXPECT_EQ(world.show("a").intent, Intent::park);
  world.supervisor().remove("a").value();
  ASSERT_TRUE(world.comes_to("a", ""));
}

TEST(Rulings, C11_AMappingDecidesWhatTheChildIs) {
  LiftWorld world;
  world.supervisor()
      .apply(
          {.children = {lift("p", R"({"children": 1, "child_mapping": {"Up": "park", "Sagging": "park"}})")}})
      .value();
  ASSERT_TRUE(world.comes_to("p", "Sagging"));
  world.kit.advance(10s);
  EXPECT_EQ(world.kit.state("p/c1"), "Down");
  auto wrong = lift("q");
  wrong.state_mapping = {{"Running", "flying"}};
  EXPECT_EQ(world.supervisor().check({.children = {wrong}}).error().code(), Code::spec_invalid);
  wrong.state_mapping = {{"Flying", "run"}};
  EXPECT_EQ(world.supervisor().check({.children = {wrong}}).error().code(), Code::spec_invalid);
}

TEST(Rulings, C11_AStateThatIsNotNamedChangesNothingUnlessThereIsADefault) {
  LiftWorld world;
  world.supervisor()
      .apply(
          {.children = {lift("keeps", R"({"children": 1, "child_mapping": {"TryingToRise": "park"}})"),
                        lift("runs",
                             R"({"children": 1, "child_mapping": {"TryingToRise": "park", "*": "run"}})")}})
      .value();
  world.kit.advance(30s);
  EXPECT_EQ(world.kit.state("keeps/c1"), "Down");  // as in the last state that was named
  EXPECT_EQ(world.kit.state("runs/c1"), "Up");
  world.site("runs").fails = 1'000'000;
  world.site("runs").level = 0;
  ASSERT_TRUE(world.kit.wait_until([&] { return world.kit.state("runs") == "TryingToRise"; }, 3s));
  EXPECT_TRUE(world.kit.wait_until([&] { return world.kit.state("runs/c1") == "Down"; }, 10s));
  auto wrong = lift("q");
  wrong.state_mapping = {{"*", "flying"}};
  EXPECT_EQ(world.supervisor().check({.children = {wrong}}).error().code(), Code::spec_invalid);
}

TEST(Rulings, C12_StatesAreFoundInAnyLetters) {
  Lab lab;
  sim::Simulation simulation;
  const auto type = lift_type(lab, simulation.spawn("program"), "lift");
  EXPECT_EQ(type.find_state("tryingtorise").value(), type.find_state("TryingToRise").value());
  const auto unknown = type.find_state("TryingToRide");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().to_string().find("did you mean TryingToRise?"), std::string::npos);
}

TEST(Rulings, C13_ATypeMayNameItself) {
  EXPECT_EQ(worker_type_name<MqttClientWorker>(), "mqttclient");
  EXPECT_EQ(worker_type_name<NamedWorker>(), "mqtt_client");
}

TEST(Rulings, C14_SnapshotsAreTyped) {
  static_assert(std::is_same_v<Lift::Snapshot, WorkerSnapshot<LiftObserved, LiftDesired>>);
  static_assert(std::is_same_v<decltype(std::declval<Lift::Snapshot>().observed), const LiftObserved&>);
  static_assert(std::is_same_v<decltype(std::declval<Lift::Snapshot>().desired), const LiftDesired&>);
  // A state cannot change what it sees.
  static_assert(
      !std::is_assignable_v<decltype((std::declval<const Lift::Snapshot&>().observed)), LiftObserved>);
  SUCCEED();
}

TEST(Rulings, C15_AWorkerNeedsThreeFunctions) {
  // next, stop and collect; what is desired is read, and where it begins is the first of its states.
  static_assert(verified_worker<MqttClientWorker>);
  const auto type = define_worker<MqttClientWorker>({});
  EXPECT_EQ(type.states.front().name, "Off");
  EXPECT_TRUE(type.derive("{}").has_value());
}

TEST(Rulings, C16_CollectingKnowsWhatIsDesired) {
  const auto type = define_worker<MqttClientWorker>({});
  const auto desired = type.derive(R"({"wanted": 7})").value();
  NoTools tools;
  const WorkerIdentity identity;
  const auto seen = type.collect(&tools, desired.get(), {.identity = identity}).value();
  EXPECT_EQ(seen.text, R"({"seen":7})");
}

TEST(Rulings, C17_ObservedIsWhatIsOutside) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"level": 4})")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  world.kit.advance(2s);
  EXPECT_EQ(world.show("a").observed.text, R"({"level":4})");
  world.site("a").fails = 1'000'000;
  world.site("a").level = 9;
  world.kit.advance(3s);
  EXPECT_EQ(world.show("a").observed.text, R"({"level":9})");
  EXPECT_TRUE(world.show("a").desired.text.contains(R"("level":4)"));
}

TEST(Rulings, C18_VersionsAreCompared) {
  LiftWorld world;
  const auto version = world.supervisor().apply({.children = {lift("a")}}).value();
  EXPECT_EQ(world.supervisor().apply({.children = {lift("b")}}, version - 1).error().code(),
            Code::desired_conflict);
  EXPECT_EQ(world.supervisor().apply({.children = {lift("b")}}, version + 1).error().code(),
            Code::desired_conflict);
  EXPECT_EQ(world.supervisor().apply({.children = {lift("b")}}, version).value(), version + 1);
}

TEST(Rulings, C19_AnIdentityNeverChanges) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 1})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  const auto before = world.show("p/c1").identity;
  world.kit.advance(10s);
  world.supervisor().restart("p/c1", "somebody asked").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p/c1").incarnation == 2; }));
  world.kit.crash();
  const auto after = world.show("p/c1").identity;
  EXPECT_EQ(after.path, before.path);
  EXPECT_EQ(after.name, before.name);
  EXPECT_EQ(after.type, before.type);
  EXPECT_EQ(after.parent, before.parent);
  EXPECT_EQ(after.created_at, before.created_at);
  // Another one under the same key is refused.
  const auto second = world.kit.engine().commit(
      Transaction{}.operation({.kind = Operation::Kind::create,
                               .machine = "worker_lift",
                               .key = "p/c1",
                               .json = encode(WorkerData{.name = "other", .type = "lift"}).value()}));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::duplicate_instance);
}

TEST(Rulings, C20_IdempotencyCanBeVerifiedWithRealTools) {
  Lab lab;
  sim::Simulation simulation;
  auto& process = simulation.spawn("program");
  const auto report = verify_idempotent<Lift::Lower, LiftTools, LiftDesired>(
      {.make =
           [&](FaultPoints&) {
             lab.sites["a"] = {.level = 3};
             return std::make_shared<LiftTools>(LiftTools{&lab, &process, "a"});
           },
       .observe = [&] { return std::to_string(lab.sites["a"].level); }});
  EXPECT_EQ(report.once, "0");
  EXPECT_EQ(report.violations, std::vector<std::string>{});
}

TEST(Rulings, C21_TheLimitsAreThoseOfTheSpecification) {
  const SupervisorOptions options;
  EXPECT_EQ(options.observe_every, 1s);
  EXPECT_EQ(options.observe_timeout, 1s + 200ms + 1s);
  EXPECT_EQ(options.stale_after, 10s);
  EXPECT_EQ(options.lost_after, 20s);
}

TEST(Rulings, C22_TheTickIs100msOnEveryLevel) {
  SupervisorKitOptions options;
  options.supervisor.strict = true;
  std::map<std::string, int> asked;
  options.supervisor.trace = [&asked](const TraceEntry& entry) { ++asked[entry.path]; };
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("p", R"({"children": 1})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  asked.clear();
  world.kit.advance(10s);
  EXPECT_GE(asked["p"], 100);
  EXPECT_GE(asked["p/c1"], 100);
}

TEST(Rulings, C23_InternalVariablesAreFilledInAndNotStored) {
  LiftWorld world;
  world.supervisor()
      .apply({.children = {lift(
                  "p", R"({"children": 1, "child_config": "{\"variable\": \"{{ "{{" }} .internal.id }} )"
                       R"({{ "{{" }} .internal.parent_id }} {{ "{{" }} .internal.bridged_by }} )"
                       R"({{ "{{" }} .internal.created_at }} {{ "{{" }} .internal.timestamp }}\"}"})")}})
      .value();
  ASSERT_TRUE(world.comes_to("p/c1", "Up")) << world.supervisor().tree().size();
  const auto view = world.show("p/c1");
  EXPECT_NE(view.desired.text.find("p/c1 p p 20"), std::string::npos) << view.desired.text;
  EXPECT_TRUE(view.spec.variables.user.empty());
  EXPECT_TRUE(view.spec.variables.global.empty());
}

TEST(Rulings, C24_ReservedNamesAreRefused) {
  LiftWorld world;
  for (const auto* name : {"global", "internal"}) {
    auto spec = lift("a");
    spec.user_spec.variables.user[name] = {"1"};
    const auto refused = world.supervisor().apply({.children = {spec}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field("key"), name);
  }
}

TEST(Rulings, C25_GlobalsReachDepthThree) {
  LiftWorld world;
  TreeSpec tree{.children = {lift("p", R"({"children": 1, "child_config": "{\"children\": 1}"})")}};
  tree.variables.global["site"] = {R"("north")"};
  world.supervisor().apply(tree).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  EXPECT_EQ(world.show("p/c1/c1").spec.variables.global.at("site").text, R"("north")");
  tree.variables.global["site"] = {R"("south")"};
  world.supervisor().apply(tree).value();
  EXPECT_TRUE(world.kit.wait_until(
      [&] { return world.show("p/c1/c1").spec.variables.global.at("site").text == R"("south")"; }, 10s));
}

TEST(Rulings, C26_OneWorkerPerNode) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  std::set<std::string> paths;
  for (const auto& view : world.supervisor().tree()) EXPECT_TRUE(paths.insert(view.identity.path).second);
  EXPECT_EQ(paths.size(), 3U);
  EXPECT_EQ(world.supervisor().check({.children = {lift("a"), lift("a")}}).error().code(),
            Code::spec_invalid);
}

TEST(Rulings, C27_TheEndIsADrain) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  EXPECT_TRUE(world.supervisor().drain().clean);
  for (const auto& [_, site] : world.lab.sites) EXPECT_EQ(site.lowers, 1);
}

TEST(Rulings, C28_ExceptionsAreContainedAtEveryBoundary) {
  LiftWorld world;
  world.site("act").throws = true;
  world.site("look").look_throws = true;
  world.supervisor()
      .apply({.children = {lift("act"), lift("look"), lift("derive", R"({"mode": "throws when it derives"})"),
                           lift("children", R"({"mode": "throws when it names its children"})"),
                           lift("next", R"({"mode": "throws"})"), lift("good")}})
      .value();
  world.kit.advance(30s);
  EXPECT_TRUE(world.show("act").problem.contains("the rope has snapped"));
  EXPECT_TRUE(world.show("look").problem.contains("the lamp has gone out"));
  EXPECT_TRUE(world.show("derive").problem.contains("the plan is broken"));
  EXPECT_TRUE(world.show("children").problem.contains("the list is broken"));
  EXPECT_TRUE(world.show("next").problem.contains("the lift is broken"));
  EXPECT_EQ(world.kit.state("good"), "Up");
}

TEST(Rulings, C29_OneSchemaForChildren) {
  auto spec = lift("a", "level: 1");
  spec.state_mapping = {{"Running", "run"}};
  spec.enabled = false;
  const auto text = encode(TreeSpec{.children = {spec}}).value();
  EXPECT_EQ(decode<TreeSpec>(text).value(), TreeSpec{.children = {spec}});
  EXPECT_EQ(decode<std::vector<ChildSpec>>(encode(std::vector{spec}).value()).value(), std::vector{spec});
}

TEST(Rulings, C30_HalfStartedMayStopEitherWay) {
  // By a state that stops: what was begun is undone; or to rest at once.
  static_assert(verified_worker<MqttClientWorker>);
  LiftWorld world;
  world.site("a").does_nothing = true;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.site("a").raises > 0; }));
  world.site("a").level = 5;  // half done
  world.kit.advance(1500ms);
  world.supervisor().park("a").value();
  ASSERT_TRUE(world.comes_to("a", "Down"));
  EXPECT_EQ(world.site("a").level, 0);
}

}  // namespace
}  // namespace pawl::test
