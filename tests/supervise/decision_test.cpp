// SPDX-License-Identifier: Apache-2.0
// Decisions as a table: the state of a worker, its observation and the time on one side, actions on the
// other.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "supervise/decision.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

using supervise::Action;
using supervise::DecisionContext;
using supervise::Membership;
using supervise::NodeState;
using supervise::PendingChild;
using testing::ElementsAreArray;

/// What is observed is the answer of the state, so that a test chooses it.
using Answer = Result<Decision>;

enum State : std::size_t { kDown, kRising, kUp, kLowering };

std::shared_ptr<const WorkerType> lift_type() {
  auto type = std::make_shared<WorkerType>();
  type->name = "lift";
  type->states = {{"Down", Phase::stopped},
                  {"Rising", Phase::starting},
                  {"Up", Phase::running},
                  {"Lowering", Phase::stopping}};
  type->actions = {{.name = "Raise"}, {.name = "Lower"}};
  type->decide = [](std::size_t, bool, const SnapshotParts& parts) {
    return *static_cast<const Answer*>(parts.observed);
  };
  type->show_observed = [](const void*) -> Result<std::string> { return "{}"; };
  type->show_desired = [](const void*) -> Result<std::string> { return "{}"; };
  return type;
}

constexpr Instant kNow = Instant{} + 1000s;

Answer stay() { return Decision{.kind = Decision::Kind::stay, .reason = "all is well"}; }
Answer go(State state) {
  return Decision{.kind = Decision::Kind::go, .target = state, .reason = "time to go"};
}
Answer act(std::size_t action) {
  return Decision{.kind = Decision::Kind::act, .target = action, .reason = "time to act"};
}
Answer remove() { return Decision{.kind = Decision::Kind::remove, .reason = "all is done"}; }

/// A lift that is up, observed half a second ago, with nothing to do; tests change it.
struct Situation {
  Situation() {
    node.identity = std::make_shared<supervise::WorkerShared>();
    node.identity->path = "lift";
    node.type = lift_type();
    node.state = kUp;
    node.desired = std::make_shared<int>();
    node.entered = kNow - 60s;
    node.freshness.seen = kNow - 500ms;
    node.freshness.seen_ticket = 2;
    node.barrier_ticket = 1;
    node.health = Health::good;
    answers(stay());
  }
  void answers(const Answer& answer) { node.observed = std::make_shared<const Answer>(answer); }
  void finish() { node.data = std::make_shared<const WorkerData>(data); }

  NodeState node;
  WorkerData data{.name = "lift", .type = "lift"};
  SupervisorOptions options{.backoff = {.first = 10s, .factor = 2.0, .cap = 60s, .jitter = Jitter::none}};
  DecisionContext context{
      .options = options, .now = kNow, .wall_time = Time{} + 5000s, .attached_at = kNow - 100s};
};

struct EventText {
  std::string operator()(const worker_event::Mapped&) const { return "Mapped"; }
  std::string operator()(const worker_event::Interrupted&) const { return "Interrupted"; }
  std::string operator()(const worker_event::Observed& event) const {
    return "Observed " + event.content.text;
  }
  std::string operator()(const worker_event::Moved& event) const {
    return "Moved to " + event.to + (event.observed ? " with " + event.observed->text : "");
  }
  std::string operator()(const worker_event::Ordered& event) const {
    return "Ordered " + event.action + (event.stops ? " to stop" : "");
  }
  std::string operator()(const worker_event::Desired&) const { return "Desired"; }
  std::string operator()(const worker_event::RestartAsked&) const { return "RestartAsked"; }
  std::string operator()(const worker_event::Restarted& event) const { return "Restarted: " + event.reason; }
  std::string operator()(const worker_event::Removed& event) const {
    return std::string("Removed") + (event.retired ? " by itself" : "");
  }
};

struct ActionText {
  std::string operator()(const supervise::action::Commit& action) const {
    return "commit " + std::visit(EventText{}, action.event);
  }
  std::string operator()(const supervise::action::SetReason& action) const {
    return "reason: " + std::string(action.reason.text());
  }
  std::string operator()(const supervise::action::SetHealth& action) const {
    constexpr std::array kNames{"good", "unobserved", "stale", "lost", "config_error", "open", "failing"};
    return std::string("health ") + kNames.at(static_cast<std::size_t>(action.health));
  }
  std::string operator()(const supervise::action::DecideAt& action) const {
    return action.at ? "decide in " + in(*action.at) : "decide after a change";
  }
  std::string operator()(const supervise::action::RestartBy& action) const {
    return "restart in " + in(action.at);
  }
  std::string operator()(const supervise::action::RemoveChildren&) const { return "remove children"; }
  std::string operator()(const supervise::action::KeepChildren&) const { return "keep children"; }
  std::string operator()(const supervise::action::StopCollection&) const { return "stop collection"; }
  std::string operator()(const supervise::action::RestartCollecting&) const { return "restart collecting"; }
  std::string operator()(const supervise::action::RestartUnobserved&) const { return "restart unobserved"; }
  std::string operator()(const supervise::action::CloseBreaker&) const { return "close breaker"; }
  std::string operator()(const supervise::action::RecordException&) const { return "record exception"; }
  std::string operator()(const supervise::action::Trace& action) const {
    return "trace " + action.entry.result;
  }

  static std::string in(Instant at) {
    return fmt::format("{} ms", std::chrono::duration_cast<std::chrono::milliseconds>(at - kNow).count());
  }
};

std::vector<std::string> texts(const std::vector<Action>& actions) {
  std::vector<std::string> found;
  for (const auto& one : actions) found.push_back(std::visit(ActionText{}, one));
  return found;
}

struct Case {
  std::string name;
  std::function<void(Situation&)> given;
  std::vector<std::string> actions;
};

class Decisions : public testing::TestWithParam<Case> {};

TEST_P(Decisions, FollowFromStateObservationAndTime) {
  Situation situation;
  GetParam().given(situation);
  situation.finish();
  const auto outcome = supervise::decide(situation.node, situation.context);
  EXPECT_THAT(texts(outcome.actions), ElementsAreArray(GetParam().actions));
}

const std::vector<Case> kRunning{
    {"AStateThatStaysSetsItsReason", [](Situation&) {}, {"reason: all is well", "decide after a change"}},
    {"AStateThatStaysMayAskToDecideAgain",
     [](Situation& s) {
       s.answers(Decision{.kind = Decision::Kind::stay, .reason = "a moment", .again = 5s});
     },
     {"reason: a moment", "decide in 5000 ms"}},
    {"ANewObservationIsStored",
     [](Situation& s) { s.node.unsaved = "{}"; },
     {"reason: all is well", "decide after a change", "commit Observed {}"}},
    {"ANewStateIsStoredWithItsObservation",
     [](Situation& s) {
       s.answers(go(kRising));
       s.node.unsaved = "{}";
     },
     {"reason: time to go", "commit Moved to Rising with {}"}},
    {"AnActionIsOrdered",
     [](Situation& s) { s.answers(act(0)); },
     {"reason: time to act", "decide after a change", "commit Ordered Raise"}},
    {"AFailedActionWaitsForItsBackOff",
     [](Situation& s) {
       s.answers(act(0));
       s.data.trouble = WorkerTrouble{.action = "Raise", .failures = 1};
       s.node.acted = kNow - 4s;
     },
     {"reason: time to act", "decide in 6000 ms"}},
    {"ABackOffIsOverAtItsEnd",
     [](Situation& s) {
       s.answers(act(0));
       s.data.trouble = WorkerTrouble{.action = "Raise", .failures = 1};
       s.node.acted = kNow - 10s;
     },
     {"reason: time to act", "decide after a change", "commit Ordered Raise"}},
    {"TheFailureOfAnotherActionDoesNotWait",
     [](Situation& s) {
       s.answers(act(0));
       s.data.trouble = WorkerTrouble{.action = "Lower", .failures = 1};
       s.node.acted = kNow - 4s;
     },
     {"reason: time to act", "decide after a change", "commit Ordered Raise"}},
    {"ABackOffThatBeganBeforeACrashGoesByTheWallClock",
     [](Situation& s) {
       s.answers(act(0));
       s.context.attached_at = kNow;
       s.data.trouble = WorkerTrouble{.action = "Raise", .failures = 1, .at = s.context.wall_time - 7s};
     },
     {"reason: time to act", "decide in 3000 ms"}},
    {"AnOrderedActionIsWaitedFor", [](Situation& s) { s.data.order = WorkerOrder{.action = "Raise"}; }, {}},
    {"AWorkerWithoutAnObservationIsNotAsked",
     [](Situation& s) { s.node.observed.reset(); },
     {"health unobserved"}},
    {"AnInvalidConfigurationIsToldFromAMissingObservation",
     [](Situation& s) {
       s.node.desired.reset();
       s.node.config_error = std::make_unique<Error>(Code::spec_invalid, "no");
     },
     {"health config_error"}},
    {"AnObservationFromBeforeTheEndOfTheActionDoesNotCount",
     [](Situation& s) { s.node.barrier_ticket = 2; },
     {}},
    {"AStaleObservationDoesNotCount",
     [](Situation& s) { s.node.freshness.seen = kNow - 10s; },
     {"health stale"}},
    {"AWorkerThatIsObservedRarelyIsStaleLater",
     [](Situation& s) {
       s.options.observe_every = 60s;
       s.node.freshness.seen = kNow - 100s;
     },
     {"reason: all is well", "decide after a change"}},
    {"AnOpenBreakerPausesDecisions",
     [](Situation& s) {
       s.node.breaker = std::make_unique<supervise::Breaker>();
       s.node.breaker->probe_at = kNow + 1s;
     },
     {"health open"}},
    {"AProbeThatSucceedsClosesTheBreaker",
     [](Situation& s) {
       s.node.breaker = std::make_unique<supervise::Breaker>();
       s.node.breaker->probe_at = kNow;
       s.node.health = Health::open;
     },
     {"health good", "close breaker", "reason: all is well", "decide after a change"}},
    {"AnExceptionIsRecorded",
     [](Situation& s) { s.answers(fail(Code::worker_threw, "broken")); },
     {"record exception"}},
    {"AnAnswerThatNamesNoStateIsAnException",
     [](Situation& s) { s.answers(go(State{9})); },
     {"record exception"}},
    {"AWorkerThatGoesInCirclesWaits",
     [](Situation& s) { s.node.moves = 9; },
     {"reason: changes its state in circles; waits for the next observation"}},
    {"AWorkerThatRemovesItselfIsRetired",
     [](Situation& s) { s.answers(remove()); },
     {"commit Removed by itself"}},
    {"AWorkerThatRemovesItselfRemovesItsChildrenFirst",
     [](Situation& s) {
       s.answers(remove());
       s.node.pending_children["child"].state = PendingChild::State::creating;
     },
     {"remove children", "reason: all is done"}},
    {"AWorkerThatDoesNotRemoveItselfAnyMoreKeepsItsChildren",
     [](Situation& s) { s.node.membership = Membership::leaving; },
     {"keep children", "reason: all is well", "decide after a change"}},
    {"ADecisionIsTraced",
     [](Situation& s) { s.options.trace = [](const TraceEntry&) {}; },
     {"trace stay: all is well", "reason: all is well", "decide after a change"}},
};

const std::vector<Case> kStopping{
    {"AParkedWorkerIsAskedHowItStops",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.answers(go(kLowering));
     },
     {"reason: time to go", "commit Moved to Lowering"}},
    {"AParkedWorkerRests",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.node.state = kDown;
     },
     {"reason: parked"}},
    {"AWorkerMayBeParkedByItsParent",
     [](Situation& s) {
       s.data.mapped = Intent::park;
       s.node.state = kDown;
     },
     {"reason: parked by its parent's state"}},
    {"StoppingDecidesOnAStaleObservation",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.node.freshness.seen = kNow - 1h;
       s.answers(go(kLowering));
     },
     {"reason: time to go", "commit Moved to Lowering"}},
    {"StoppingWaitsAMomentForAnObservationAfterTheLastAction",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.node.barrier_ticket = 2;
       s.node.barrier_at = kNow - 1s;
     },
     {"decide in 1200 ms"}},
    {"StoppingInterruptsAnActionThatDoesNotStop",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.data.order = WorkerOrder{.action = "Raise"};
     },
     {"commit Interrupted"}},
    {"StoppingDoesNotInterruptAnActionThatStops",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.data.order = WorkerOrder{.action = "Lower", .stops = true};
     },
     {}},
    {"AnActionOfStoppingIsMarked",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.node.state = kLowering;
       s.answers(act(1));
     },
     {"reason: time to act", "decide after a change", "commit Ordered Lower to stop"}},
    {"CirclesAreCountedAnewWhenStoppingBegins",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.node.moves = 9;
       s.answers(go(kLowering));
     },
     {"reason: time to go", "commit Moved to Lowering"}},
    {"AnUnwantedWorkerAtRestIsRemoved",
     [](Situation& s) {
       s.node.membership = Membership::unwanted;
       s.node.state = kDown;
     },
     {"commit Removed"}},
    {"AnUnwantedWorkerWaitsForItsChildren",
     [](Situation& s) {
       s.node.membership = Membership::replaced;
       s.node.state = kDown;
       s.node.views.emplace_back();
     },
     {"reason: waits for 1 children to be removed"}},
    {"AnUnwantedWorkerThatCannotBeAskedIsRemoved",
     [](Situation& s) {
       s.node.membership = Membership::unwanted;
       s.node.desired.reset();
     },
     {"commit Removed"}},
    {"AParkedWorkerThatCannotBeAskedStaysAsItIs",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.node.desired.reset();
     },
     {}},
    {"AParkedWorkerThatAnswersRemoveBeginsANewIncarnation",
     [](Situation& s) {
       s.data.asked = Intent::park;
       s.node.state = kLowering;
       s.answers(remove());
     },
     {"commit Restarted: all is done"}},
    {"ARestartHasADeadline",
     [](Situation& s) {
       s.data.restart = "by hand";
       s.answers(go(kLowering));
     },
     {"restart in 30000 ms", "reason: time to go", "commit Moved to Lowering"}},
    {"ARestartEndsAtRest",
     [](Situation& s) {
       s.data.restart = "by hand";
       s.node.restart_by = kNow + 1s;
       s.node.state = kDown;
     },
     {"commit Restarted: by hand"}},
    {"ARestartSkipsTheStopPathAfterItsDeadline",
     [](Situation& s) {
       s.data.restart = "by hand";
       s.node.restart_by = kNow;
     },
     {"commit Restarted: by hand; it did not stop in time"}},
    {"ADrainWaitsForTheChildren",
     [](Situation& s) {
       s.context.drain_until = kNow + 1s;
       s.node.views.push_back({.phase = Phase::running});
     },
     {"reason: waits for 1 children to stop"}},
    {"ADrainDoesNotWaitForTheChildrenForEver",
     [](Situation& s) {
       s.context.drain_until = kNow;
       s.node.views.push_back({.phase = Phase::running});
       s.answers(go(kLowering));
     },
     {"reason: time to go", "commit Moved to Lowering"}},
    {"ADrainedWorkerRests",
     [](Situation& s) {
       s.context.drain_until = kNow + 1s;
       s.node.state = kDown;
     },
     {"reason: stopped, because the program ends"}},
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Running, Decisions, testing::ValuesIn(kRunning), name_of);
INSTANTIATE_TEST_SUITE_P(Stopping, Decisions, testing::ValuesIn(kStopping), name_of);

TEST(Intents, RemovalGoesBeforeADrainBeforeParkingBeforeRunningBeforeTheSpecification) {
  Situation situation;
  auto intent = [&](bool draining = false) {
    situation.finish();
    return supervise::intent_of(situation.node, draining);
  };
  EXPECT_EQ(intent(), Intent::run);
  situation.data.enabled = false;
  EXPECT_EQ(intent(), Intent::park);
  situation.data.asked = Intent::run;
  EXPECT_EQ(intent(), Intent::run);
  situation.data.mapped = Intent::park;
  EXPECT_EQ(intent(), Intent::park);
  situation.data.mapped.reset();
  EXPECT_EQ(intent(true), Intent::park);
  situation.node.membership = Membership::unwanted;
  EXPECT_EQ(intent(true), Intent::remove);
}

// Children.

/// A parent with a variable, and a child as its specification wants it.
struct Family {
  Family() {
    for (auto* node : {&parent, &child}) {
      node->identity = std::make_shared<supervise::WorkerShared>();
      node->type = lift_type();
      node->data = std::make_shared<const WorkerData>(WorkerData{.name = "lift", .type = "lift"});
    }
    WorkerData data{.name = "parent", .type = "lift"};
    data.spec.variables.user.emplace("SITE", Json{"\"north\""});
    parent.data = std::make_shared<const WorkerData>(data);
    child.identity->type = "lift";
    child.data = std::make_shared<const WorkerData>(supervise::new_child(parent, spec, {}));
  }
  supervise::ChildPlan plan(bool named = true) const {
    return supervise::plan_child(parent, child, named ? &spec : nullptr);
  }

  ChildSpec spec{.name = "child", .worker_type = "lift"};
  NodeState parent;
  NodeState child;
};

TEST(PlanOfAChild, ChangesNothingWhereTheChildIsAsSpecified) {
  const Family family;
  const auto plan = family.plan();
  EXPECT_EQ(plan.membership, Membership::wanted);
  EXPECT_FALSE(plan.changed);
  EXPECT_FALSE(plan.update.has_value());
}

TEST(PlanOfAChild, WithoutASpecificationMakesItUnwanted) {
  const Family family;
  const auto plan = family.plan(false);
  EXPECT_EQ(plan.membership, Membership::unwanted);
  EXPECT_TRUE(plan.changed);
}

TEST(PlanOfAChild, OfAnotherTypeReplacesIt) {
  Family family;
  family.spec.worker_type = "crane";
  const auto plan = family.plan();
  EXPECT_EQ(plan.membership, Membership::replaced);
  EXPECT_TRUE(plan.changed);
  EXPECT_FALSE(plan.update.has_value());
}

TEST(PlanOfAChild, ThatIsUnwantedAlreadyChangesNothing) {
  Family family;
  family.child.membership = Membership::replaced;
  const auto plan = family.plan(false);
  EXPECT_EQ(plan.membership, Membership::unwanted);
  EXPECT_FALSE(plan.changed);
}

TEST(PlanOfAChild, ThatIsNamedAgainMakesItWanted) {
  Family family;
  family.child.membership = Membership::unwanted;
  const auto plan = family.plan();
  EXPECT_EQ(plan.membership, Membership::wanted);
  EXPECT_TRUE(plan.changed);
}

TEST(PlanOfAChild, ThatRemovesItselfDoesNotKeepIt) {
  Family family;
  family.child.membership = Membership::leaving;
  const auto plan = family.plan();
  EXPECT_EQ(plan.membership, Membership::leaving);
  EXPECT_FALSE(plan.changed);
}

TEST(PlanOfAChild, UpdatesItsSpecificationWithTheVariablesOfTheParent) {
  Family family;
  family.spec.enabled = false;
  const auto plan = family.plan();
  ASSERT_TRUE(plan.update.has_value());
  EXPECT_FALSE(plan.update->enabled);
  EXPECT_EQ(plan.update->expected_version, 1);
  EXPECT_EQ(plan.update->spec.variables.user.at("SITE").text, "\"north\"");
}

TEST(StateMapping, ExactNamesGoBeforeTheDefaultAndCaseIsIgnored) {
  Family family;
  auto mapped = [&](State parent, std::map<std::string, std::string> mapping) {
    WorkerData data = *family.child.data;
    data.state_mapping = std::move(mapping);
    family.child.data = std::make_shared<const WorkerData>(data);
    family.parent.state = parent;
    return supervise::mapped_intent(family.parent, family.child);
  };
  EXPECT_EQ(mapped(kUp, {{"*", "park"}, {"up", "run"}}), Intent::run);
  EXPECT_EQ(mapped(kRising, {{"*", "park"}, {"up", "run"}}), Intent::park);
  EXPECT_EQ(mapped(kDown, {{"Down", "down"}}), Intent::park) << "a stopped state of the child";
  EXPECT_EQ(mapped(kUp, {{"Down", "down"}}), std::nullopt) << "nothing was mapped before";
}

TEST(StateMapping, ATransitionalStateIsNoTarget) {
  EXPECT_EQ(supervise::mapping_target(*lift_type(), "Rising").error().code(), Code::spec_invalid);
}

TEST(Breakers, OpenAfterThreeExceptionsAndPauseLongerEachTime) {
  const Situation situation;
  supervise::Breaker breaker;
  const Error error(Code::worker_threw, "broken");
  auto pause = [&](Duration after) {
    const auto now = kNow + after;
    return supervise::record_exception(breaker, "lift", error, situation.options, now) - now;
  };
  EXPECT_EQ(pause(0s), situation.options.tick);
  EXPECT_EQ(pause(1s), situation.options.tick);
  EXPECT_EQ(pause(2s), 10s);
  EXPECT_EQ(pause(12s), 20s);
  EXPECT_EQ(pause(10min), situation.options.tick) << "the others are too long ago";
  EXPECT_EQ(breaker.opened, 0U);
}

}  // namespace
}  // namespace pawl::test
