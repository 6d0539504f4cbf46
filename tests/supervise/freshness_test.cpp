// SPDX-License-Identifier: Apache-2.0
// Missing observations and deadlines as tables.
#include "supervise/freshness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

using supervise::DecisionContext;
using supervise::NodeState;
using supervise::PendingChild;
using Collection = supervise::Freshness::Collection;
using testing::ElementsAreArray;

constexpr Instant kNow = Instant{} + 1000s;

/// A worker that was observed half a second ago; tests change it.
struct Situation {
  Situation() {
    auto made = std::make_shared<WorkerType>();
    made->states = {{"Up", Phase::running}};
    type = made;
    node.identity = std::make_shared<supervise::WorkerShared>();
    node.type = made;
    node.desired = std::make_shared<int>();
    node.observed = std::make_shared<int>();
    node.health = Health::good;
    node.freshness.seen = kNow - 500ms;
    node.freshness.seen_ticket = 1;
    node.freshness.next = kNow + 500ms;
  }
  void finish() {
    node.type = type;
    node.data = std::make_shared<const WorkerData>(data);
  }
  void is_collecting(Collection collection, Duration ago) {
    node.freshness.collection = collection;
    node.freshness.began = kNow - ago;
  }

  std::shared_ptr<WorkerType> type;
  NodeState node;
  WorkerData data{.name = "lift", .type = "lift"};
  SupervisorOptions options{};
  DecisionContext context{.options = options, .now = kNow};
};

std::string text(const supervise::Action& action) {
  if (const auto* health = std::get_if<supervise::action::SetHealth>(&action))
    return health->health == Health::lost    ? "lost"
           : health->health == Health::stale ? "stale"
                                             : "other health";
  if (std::holds_alternative<supervise::action::StopCollection>(action)) return "stop collection";
  if (std::holds_alternative<supervise::action::RestartCollecting>(action)) return "restart collecting";
  if (std::holds_alternative<supervise::action::RestartUnobserved>(action)) return "restart worker";
  return "other";
}

struct Case {
  std::string name;
  std::function<void(Situation&)> given;
  std::vector<std::string> actions;
};

class MissingObservations : public testing::TestWithParam<Case> {};

TEST_P(MissingObservations, AreEscalated) {
  Situation situation;
  GetParam().given(situation);
  situation.finish();
  std::vector<std::string> found;
  for (const auto& action : supervise::check_freshness(situation.node, situation.context))
    found.push_back(text(action));
  EXPECT_THAT(found, ElementsAreArray(GetParam().actions));
}

const std::vector<Case> kCases{
    {"NotWhileObservationsAreFresh", [](Situation&) {}, {}},
    {"ACollectionWithinItsTimeGoesOn",
     [](Situation& s) { s.is_collecting(Collection::running, 2100ms); },
     {}},
    {"ALateCollectionIsAskedToStop",
     [](Situation& s) { s.is_collecting(Collection::running, 2200ms); },
     {"stop collection"}},
    {"ALateCollectionIsAskedOnce", [](Situation& s) { s.is_collecting(Collection::late, 3s); }, {}},
    {"StaleAfterTenSeconds", [](Situation& s) { s.node.freshness.seen = kNow - 10s; }, {"stale"}},
    {"LostAfterTwentySeconds",
     [](Situation& s) { s.node.freshness.seen = kNow - 20s; },
     {"lost", "restart collecting"}},
    {"LostTwentySecondsAfterTheStartWithoutAnyObservation",
     [](Situation& s) {
       s.node.health = Health::unobserved;
       s.node.freshness.seen.reset();
       s.node.freshness.since = kNow - 20s;
     },
     {"lost", "restart collecting"}},
    {"TimeInTheQueueDoesNotCount",
     [](Situation& s) {
       s.node.health = Health::stale;
       s.node.freshness.seen = kNow - 25s;
       s.node.freshness.waited = 6s;
     },
     {}},
    {"AQueuedCollectionIsNotRestarted",
     [](Situation& s) {
       s.node.health = Health::stale;
       s.node.freshness.seen = kNow - 1h;
       s.is_collecting(Collection::queued, 0s);
     },
     {}},
    {"AQueuedCollectionMakesTheWorkerStale",
     [](Situation& s) {
       s.node.freshness.seen = kNow - 10s;
       s.is_collecting(Collection::queued, 0s);
     },
     {"stale"}},
    {"ARestartWaitsForThePauseOfTheLast",
     [](Situation& s) {
       s.node.health = Health::lost;
       s.node.freshness.seen = kNow - 23s;
       s.node.freshness.restarts = 1;
       s.node.freshness.last_restart = kNow - 3900ms;
     },
     {}},
    {"ThePauseGrowsWithTheRestarts",
     [](Situation& s) {
       s.node.health = Health::lost;
       s.node.freshness.seen = kNow - 30s;
       s.node.freshness.restarts = 2;
       s.node.freshness.last_restart = kNow - 6s;
     },
     {"restart collecting"}},
    {"AfterAllRestartsTheWorkerIsRestarted",
     [](Situation& s) {
       s.node.health = Health::lost;
       s.node.freshness.seen = kNow - 40s;
       s.node.freshness.restarts = 3;
       s.node.freshness.last_restart = kNow - 8s;
     },
     {"restart worker"}},
    {"AWorkerThatRestartsIsNotRestartedAgain",
     [](Situation& s) {
       s.data.restart = "by hand";
       s.node.health = Health::lost;
       s.node.freshness.seen = kNow - 40s;
       s.node.freshness.restarts = 3;
       s.node.freshness.last_restart = kNow - 8s;
     },
     {}},
    {"AWorkerThatIsObservedRarelyHasMoreTime",
     [](Situation& s) {
       s.type->observe_every = 60s;
       s.node.freshness.seen = kNow - 120s;
     },
     {}},
};

INSTANTIATE_TEST_SUITE_P(All, MissingObservations, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

struct DeadlineCase {
  std::string name;
  std::function<void(Situation&)> given;
  std::optional<Duration> due;
};

class Deadlines : public testing::TestWithParam<DeadlineCase> {};

TEST_P(Deadlines, AreTheNextTimeAtWhichSomethingIsDue) {
  Situation situation;
  GetParam().given(situation);
  situation.finish();
  const auto due = supervise::next_deadline(situation.node, situation.context);
  EXPECT_EQ(due, GetParam().due ? kNow + *GetParam().due : Instant::max());
}

const std::vector<DeadlineCase> kDeadlines{
    {"TheNextCollection", [](Situation&) {}, 500ms},
    {"NeverWithoutAConfiguration", [](Situation& s) { s.node.desired.reset(); }, {}},
    {"TheEndOfTheCollectionsTime", [](Situation& s) { s.is_collecting(Collection::running, 2s); }, 200ms},
    {"StalenessWhileALateCollectionRuns", [](Situation& s) { s.is_collecting(Collection::late, 3s); },
     9500ms},
    {"LossOnceTheWorkerIsStale",
     [](Situation& s) {
       s.node.freshness.seen = kNow - 15s;
       s.is_collecting(Collection::late, 15s);
     },
     5s},
    {"TheNextRestartOnceTheWorkerIsLost",
     [](Situation& s) {
       s.node.freshness.seen = kNow - 21s;
       s.node.freshness.restarts = 1;
       s.node.freshness.last_restart = kNow - 1s;
       s.is_collecting(Collection::late, 4s);
     },
     3s},
    {"APostponedDecision", [](Situation& s) { s.node.again = kNow + 100ms; }, 100ms},
    {"TheDeadlineOfARestart",
     [](Situation& s) {
       s.data.restart = "by hand";
       s.node.restart_by = kNow + 200ms;
     },
     200ms},
    {"NotTheDeadlineOfARestartThatIsOver", [](Situation& s) { s.node.restart_by = kNow + 200ms; }, 500ms},
    {"TheNextAttemptToCreateAChild",
     [](Situation& s) {
       s.node.pending_children["a"] = {.state = PendingChild::State::failed, .not_before = kNow + 300ms};
       s.node.pending_children["b"] = {.state = PendingChild::State::retired};
     },
     300ms},
};

INSTANTIATE_TEST_SUITE_P(All, Deadlines, testing::ValuesIn(kDeadlines),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pawl::test
