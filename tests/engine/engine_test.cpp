// SPDX-License-Identifier: Apache-2.0
#include "pawl/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/atomic.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EngineTest : public testing::Test {
 protected:
  World world{counters};
};

TEST_F(EngineTest, AnInstanceIsCreatedAndFired) {
  const auto made = world->create<counter>("c").value();
  EXPECT_EQ(made.state, Count::open);
  EXPECT_EQ(made.version, 1);
  const auto after = world->send<counter>("c", Add{5}).value();
  EXPECT_EQ(after.data.sum, 5);
  EXPECT_EQ(after.version, 2);
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 5);
}

TEST_F(EngineTest, WhatWasAnsweredSurvivesAKill) {
  ASSERT_TRUE(world->create<counter>("c"));
  ASSERT_TRUE(world->send<counter>("c", Add{5}));
  world.restart();
  const auto found = world->get<counter>("c").value();
  EXPECT_EQ(found.data.sum, 5);
  EXPECT_EQ(found.version, 2);
  EXPECT_EQ(world->report().instances, 1U);
}

TEST_F(EngineTest, WhatWasAnsweredSurvivesACleanStop) {
  ASSERT_TRUE(world->create<counter>("c"));
  world.stop();
  world.start();
  EXPECT_TRUE(world->get<counter>("c"));
}

TEST_F(EngineTest, AnIllegalEventIsRefusedWithInstanceStateEventAndLegalOnes) {
  ASSERT_TRUE(world->create<member>("m"));
  const auto refused = world->send<member>("m", Demote{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::illegal_event);
  EXPECT_EQ(refused.error().message(),
            "member \"m\" is follower: it does not accept Demote; legal: Promote, Leave");
  EXPECT_EQ(world->get<member>("m").value().version, 1);
}

TEST_F(EngineTest, RefusalsNameTheirReason) {
  ASSERT_TRUE(world->create<counter>("c"));
  EXPECT_EQ(code_of(world->send<counter>("c", Add{-1})), Code::guard_refused);
  EXPECT_EQ(code_of(world->send<counter>("nobody", Add{1})), Code::unknown_instance);
  EXPECT_EQ(code_of(world->create<counter>("c")), Code::duplicate_instance);
  EXPECT_EQ(code_of(world->create<counter>("")), Code::invalid_argument);
  EXPECT_EQ(code_of(world->create<counter>(std::string(513, 'x'))), Code::invalid_argument);
  EXPECT_EQ(code_of(world->read("nothing", "c")), Code::unknown_machine);
  EXPECT_EQ(
      code_of(world->commit(Transaction{}.operation({.machine = "counter", .key = "c", .event = "Jump"}))),
      Code::unknown_event);
  EXPECT_EQ(code_of(world->commit(Transaction{}.operation(
                {.machine = "counter", .key = "c", .event = "Add", .json = R"({"amount":"x"})"}))),
            Code::wrong_type);
  ASSERT_TRUE(world->send<counter>("c", Close{}));
  EXPECT_EQ(code_of(world->send<counter>("c", Add{1})), Code::finished_instance);
}

TEST_F(EngineTest, AnExpectedVersionThatHasPassedIsAConflict) {
  ASSERT_TRUE(world->create<counter>("c"));
  EXPECT_TRUE(world->send<counter>("c", Add{1}, {.expected_version = 1}));
  const auto late = world->send<counter>("c", Add{1}, {.expected_version = 1});
  EXPECT_EQ(code_of(late), Code::version_conflict);
  EXPECT_EQ(late.error().field("version"), "2");
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 1);
}

TEST_F(EngineTest, AFinishedKeyBeginsItsNextGeneration) {
  ASSERT_TRUE(world->create<counter>("c", {.sum = 1}));
  ASSERT_TRUE(world->send<counter>("c", Close{}));
  const auto again = world->create<counter>("c", {.sum = 7}).value();
  EXPECT_EQ(again.generation, 2);
  EXPECT_EQ(again.state, Count::open);
  EXPECT_EQ(again.data.sum, 7);
  EXPECT_EQ(world->counts().at("counter").at("open"), 1U);
  EXPECT_EQ(world->counts().at("counter").at("closed"), 0U);
  world.restart();
  EXPECT_EQ(world->get<counter>("c").value().generation, 2);
  ASSERT_TRUE(world->create<member>("m"));
  ASSERT_TRUE(world->send<member>("m", Leave{}));
  EXPECT_EQ(code_of(world->create<member>("m")), Code::finished_instance)
      << "only machines that say .generations()";
}

TEST_F(EngineTest, ARepeatedRequestReturnsTheFirstOutcome) {
  ASSERT_TRUE(world->create<counter>("c"));
  const auto first = world->send<counter>("c", Add{5}, {.request_id = "r1"}).value();
  ASSERT_TRUE(world->send<counter>("c", Add{1}));
  const auto repeat = world->send<counter>("c", Add{5}, {.request_id = "r1"}).value();
  EXPECT_EQ(repeat.version, first.version);
  EXPECT_EQ(repeat.data.sum, 5);
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 6);
  world.restart();
  EXPECT_EQ(world->send<counter>("c", Add{5}, {.request_id = "r1"}).value().version, first.version);
  EXPECT_EQ(code_of(world->send<counter>("c", Add{6}, {.request_id = "r1"})), Code::request_id_reused);
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 6);
}

TEST_F(EngineTest, ARepeatIsEqualInTheContentThatItNamesWhateverElseItHolds) {
  ASSERT_TRUE(world->create<counter>("c"));
  const auto add = [&](int amount, std::string content) {
    return world->commit(Transaction{}.send<counter>("c", Add{amount}).request_id("r", std::move(content)));
  };
  const auto first = add(5, "five or so").value().front();
  world.restart();
  EXPECT_EQ(add(6, "five or so").value().front().data, first.data);
  EXPECT_EQ(code_of(add(5, "six")), Code::request_id_reused);
  EXPECT_EQ(code_of(world->send<counter>("c", Add{5}, {.request_id = "r"})), Code::request_id_reused);
}

TEST_F(EngineTest, ARequestIdCoversExpectedVersionsAndParameters) {
  World world(counters, {.schema = {{.text = "CREATE TABLE IF NOT EXISTS t(x)"}}});
  world->create<counter>("c").value();
  const auto add = [&](std::string id, std::optional<std::int64_t> version, SqlValue value) {
    return code_of(world->commit(Transaction{}
                                     .send<counter>("c", Add{1}, {.expected_version = version})
                                     .sql({.text = "INSERT INTO t VALUES(?1)", .rows = {{value}}})
                                     .request_id(std::move(id))));
  };
  EXPECT_EQ(add("r", 1, 5), Code{});
  EXPECT_EQ(add("r", 1, 5), Code{});
  EXPECT_EQ(add("r", 2, 5), Code::request_id_reused);
  EXPECT_EQ(add("r", 1, 6), Code::request_id_reused);
  EXPECT_EQ(add("r", 1, "5"), Code::request_id_reused);
  EXPECT_EQ(world->query({.text = "SELECT count(*) FROM t"}).value()[0][0], SqlValue(1));
}

TEST_F(EngineTest, ATransactionIsAllOrNothing) {
  ASSERT_TRUE(world->create<member>("a", {}, {.partition = "g"}));
  ASSERT_TRUE(world->create<member>("b", {}, {.partition = "g"}));
  const auto refused = world->commit(Transaction{}.send<member>("a", Promote{}).send<member>("b", Demote{}));
  EXPECT_EQ(code_of(refused), Code::illegal_event);
  EXPECT_EQ(world->get<member>("a").value().state, Role::follower);
  const auto done =
      world->commit(Transaction{}.send<member>("a", Promote{}).send<member>("b", Leave{})).value();
  EXPECT_EQ(done.size(), 2U);
  EXPECT_EQ(world->get<member>("a").value().state, Role::leader);
  EXPECT_EQ(world->get<member>("b").value().state, Role::gone);
}

TEST_F(EngineTest, ATransactionStaysWithinOnePartition) {
  ASSERT_TRUE(world->create<member>("a", {}, {.partition = "g"}));
  ASSERT_TRUE(world->create<member>("b", {}, {.partition = "h"}));
  ASSERT_TRUE(world->create<member>("c"));
  EXPECT_EQ(code_of(world->commit(Transaction{}.send<member>("a", Promote{}).send<member>("b", Promote{}))),
            Code::wrong_partition);
  EXPECT_EQ(code_of(world->commit(Transaction{}.send<member>("a", Promote{}).send<member>("c", Promote{}))),
            Code::wrong_partition);
  ASSERT_TRUE(world->create<member>("d"));
  EXPECT_EQ(code_of(world->commit(Transaction{}.send<member>("c", Promote{}).send<member>("d", Promote{}))),
            Code::wrong_partition)
      << "each without a partition is in one of its own";
}

TEST_F(EngineTest, AtomicallyRunsAgainWhenThePartitionChangedMeanwhile) {
  ASSERT_TRUE(world->create<member>("a", {}, {.partition = "g"}));
  ASSERT_TRUE(world->create<member>("b", {}, {.partition = "g"}));
  int runs = 0;
  const auto done = world->atomically("g", [&](Atomic& group) -> Result<void> {
    const bool vacant = group.all<member>(Role::leader).empty();
    if (++runs == 1) {
      EXPECT_TRUE(world->send<member>("a", Promote{}));
    }
    if (vacant) group.send<member>("b", Promote{});
    return {};
  });
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(world->get<member>("b").value().state, Role::follower);
}

TEST_F(EngineTest, AtomicallyGivesUpAfterItsAttempts) {
  ASSERT_TRUE(world->create<counter>("a", {}, {.partition = "g"}));
  int runs = 0;
  const auto done = world->atomically(
      "g",
      [&](Atomic& group) -> Result<void> {
        ++runs;
        EXPECT_TRUE(world->send<counter>("a", Add{1}));
        group.send<counter>("a", Add{100});
        return {};
      },
      3);
  EXPECT_EQ(code_of(done), Code::version_conflict);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(world->get<counter>("a").value().data.sum, 3);
}

TEST_F(EngineTest, ARecoveryMappingIsAppliedAtOpening) {
  ASSERT_TRUE(world->create<member>("m"));
  ASSERT_TRUE(world->send<member>("m", Promote{}));
  world.restart();
  EXPECT_EQ(world->report().recovered, 1U);
  const auto found = world->get<member>("m").value();
  EXPECT_EQ(found.state, Role::follower);
  EXPECT_EQ(found.data.term, 1);
  EXPECT_EQ(world->history("member", "m").value().events.front().kind, "recovery");
}

TEST_F(EngineTest, HistoryIsNewestFirstAndPaged) {
  ASSERT_TRUE(world->create<counter>("c"));
  for (int i = 1; i <= 4; ++i) ASSERT_TRUE(world->send<counter>("c", Add{i}));
  const auto first = world->history("counter", "c", 0, 2).value();
  ASSERT_EQ(first.events.size(), 2U);
  EXPECT_EQ(first.events[0].payload, R"({"amount":4})");
  EXPECT_EQ(first.events[0].event, "Add");
  EXPECT_EQ(first.events[0].data, R"({"sum":10})");
  const auto rest = world->history("counter", "c", first.next, 10).value();
  ASSERT_EQ(rest.events.size(), 3U);
  EXPECT_EQ(rest.events.back().kind, "created");
  EXPECT_EQ(rest.next, 0);
  EXPECT_FALSE(rest.truncated);
}

TEST_F(EngineTest, ListingIsInTheOrderOfCreationPageByPage) {
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(world->create<counter>("c" + std::to_string(i)));
  ASSERT_TRUE(world->create<member>("m"));
  ASSERT_TRUE(world->send<counter>("c3", Close{}));
  std::vector<std::string> keys;
  ListQuery query{.machine = "counter", .state = "open", .limit = 7};
  do {
    const auto page = world->list(query).value();
    for (const auto& instance : page.instances) keys.push_back(instance.key);
    query.cursor = page.next;
    if (keys.size() == 14) world.restart();  // a cursor outlives the process
  } while (!query.cursor.empty());
  ASSERT_EQ(keys.size(), 24U);
  EXPECT_EQ(keys.front(), "c0");
  EXPECT_EQ(keys[3], "c4");
  EXPECT_EQ(keys.back(), "c24");
  EXPECT_EQ(code_of(world->list({.cursor = "nonsense"})), Code::cursor_invalid);
}

/// The keys and times of a list, in its order.
std::vector<std::pair<std::string, Time>> listed(World& world) {
  std::vector<std::pair<std::string, Time>> all;
  for (const auto& instance : world->list({.machine = "counter"}).value().instances)
    all.emplace_back(instance.key, instance.created_at);
  return all;
}

TEST_F(EngineTest, ANewGenerationIsListedBehindTheOthersAlsoAfterARestart) {
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(world->create<counter>(key));
  ASSERT_TRUE(world->send<counter>("a", Close{}));
  ASSERT_TRUE(world->create<counter>("a"));
  const auto before = listed(world);
  EXPECT_EQ(before.back().first, "a");
  const auto first_page = world->list({.machine = "counter", .limit = 2}).value();
  world.restart();
  EXPECT_EQ(listed(world), before);
  const auto rest = world->list({.machine = "counter", .cursor = first_page.next}).value();
  ASSERT_EQ(rest.instances.size(), 1U);
  EXPECT_EQ(rest.instances.front().key, "a");
  world.stop();
  world.start();
  EXPECT_EQ(listed(world), before) << "after a clean stop, too";
}

TEST_F(EngineTest, PagesAreCompleteAlsoWhereNewGenerationsHaveLeftGaps) {
  const std::vector<std::string> keys{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  for (const auto& key : keys) ASSERT_TRUE(world->create<counter>(key));
  for (const char* key : {"d", "e", "f", "g"}) {
    ASSERT_TRUE(world->send<counter>(key, Close{}));
    ASSERT_TRUE(world->create<counter>(key));
  }
  std::string found;
  ListQuery query{.machine = "counter", .limit = 1};
  do {
    const auto page = world->list(query).value();
    for (const auto& instance : page.instances) found += instance.key;
    query.cursor = page.next;
  } while (!query.cursor.empty());
  EXPECT_EQ(found, "abchijdefg");
}

TEST_F(EngineTest, OneThatIsChangedByTheBatchThatCreatedItIsListedWhereItWasCreated) {
  int done = 0;
  const auto note = [&](const Result<std::vector<Instance>>& outcome) { done += outcome ? 1 : 0; };
  for (const char* key : {"a", "b", "c"}) world->submit(Transaction{}.create<counter>(key), note);
  world->submit(Transaction{}.send<counter>("b", Add{2}), note);
  world->submit(Transaction{}.send<counter>("a", Add{1}), note);
  ASSERT_TRUE(world->create<counter>("d"));
  ASSERT_EQ(done, 5);
  const auto before = listed(world);
  std::string keys;
  for (const auto& [key, created_at] : before) keys += key;
  EXPECT_EQ(keys, "abcd");
  EXPECT_EQ(world->get<counter>("a").value().data.sum, 1);
  EXPECT_EQ(world->get<counter>("b").value().data.sum, 2);
  world.restart();
  EXPECT_EQ(listed(world), before);
}

TEST(EngineLease, NothingIsReadOnceTheLeaseHasRunOut) {
  LeaseFate fate;
  World world(counters, {}, {.opener = opens<Leased>(fate)});
  ASSERT_TRUE(world->create<counter>("c"));
  auto subscription = world->subscribe("begin").value();
  fate.lapsed = true;
  EXPECT_EQ(code_of(world->get<counter>("c")), Code::store_fenced);
  EXPECT_EQ(code_of(world->list({})), Code::store_fenced);
  EXPECT_EQ(code_of(world->history("counter", "c")), Code::store_fenced);
  EXPECT_EQ(code_of(world->ephemerals("counter", "c")), Code::store_fenced);
  EXPECT_EQ(code_of(world->query({.text = "SELECT 1"})), Code::store_fenced);
  EXPECT_EQ(code_of(subscription.poll()), Code::store_fenced);
  fate.lapsed = false;
  EXPECT_EQ(subscription.poll().value().size(), 1U) << "a lease that was renewed after all";
}

TEST_F(EngineTest, ListingTheNewestFirstHasCursorsToo) {
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(world->create<counter>("c" + std::to_string(i)));
  std::vector<std::string> keys;
  ListQuery query{.machine = "counter", .newest_first = true, .limit = 7};
  do {
    const auto page = world->list(query).value();
    for (const auto& instance : page.instances) keys.push_back(instance.key);
    query.cursor = page.next;
    if (keys.size() == 14) world.restart();
    // New instances belong before the first page and do not appear on later ones.
    if (keys.size() == 7) {
      ASSERT_TRUE(world->create<counter>("late"));
    }
  } while (!query.cursor.empty());
  ASSERT_EQ(keys.size(), 25U);
  EXPECT_EQ(keys.front(), "c24");
  EXPECT_EQ(keys.back(), "c0");
  EXPECT_EQ(world->list({.newest_first = true, .limit = 1}).value().instances.front().key, "late");
}

TEST_F(EngineTest, ListingChoosesMachinesAndTheBeginningOfKeys) {
  for (const auto* key : {"ab", "b", "abc"}) ASSERT_TRUE(world->create<counter>(key));
  ASSERT_TRUE(world->create<member>("abm"));
  const auto keys = [&](ListQuery query) {
    std::string all;
    for (const auto& instance : world->list(query).value().instances) all += instance.key + " ";
    return all;
  };
  EXPECT_EQ(keys({.prefix = "ab"}), "ab abc abm ");
  EXPECT_EQ(keys({.machines = {"counter"}, .prefix = "ab"}), "ab abc ");
  EXPECT_EQ(keys({.machines = {"counter", "member"}}), "ab b abc abm ");
  EXPECT_EQ(keys({.queue = "nobody's"}), "");
  EXPECT_EQ(code_of(world->list({.machines = {"counter", "nothing"}})), Code::unknown_machine);
}

TEST_F(EngineTest, CountsFollowTheStates) {
  ASSERT_TRUE(world->create<counter>("a"));
  ASSERT_TRUE(world->create<counter>("b"));
  ASSERT_TRUE(world->send<counter>("b", Close{}));
  const auto counts = world->counts();
  EXPECT_EQ(counts.at("counter").at("open"), 1U);
  EXPECT_EQ(counts.at("counter").at("closed"), 1U);
  EXPECT_EQ(counts.at("member").at("leader"), 0U);
}

TEST_F(EngineTest, ASubscriberResumesItsCursorAndMissesNothing) {
  ASSERT_TRUE(world->create<counter>("c"));
  auto from_begin = world->subscribe("begin").value();
  EXPECT_EQ(from_begin.poll().value().size(), 1U);
  const auto cursor = from_begin.cursor();
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(world->send<counter>("c", Add{i}));
  world.restart();
  auto resumed = world->subscribe(cursor).value();
  std::vector<std::string> payloads;
  const auto missed = resumed.poll().value();
  for (const auto& event : missed) {
    payloads.push_back(event.payload);
    EXPECT_EQ(event.key, "c");
  }
  EXPECT_THAT(payloads, ElementsAre(R"({"amount":1})", R"({"amount":2})", R"({"amount":3})"));
  EXPECT_TRUE(resumed.poll().value().empty());
  EXPECT_EQ(code_of(world->subscribe("0123.7")), Code::cursor_invalid);
}

TEST_F(EngineTest, ASubscriptionMayOutliveItsEngine) {
  ASSERT_TRUE(world->create<counter>("c"));
  auto subscription = world->subscribe("begin").value();
  ASSERT_EQ(subscription.poll(1).value().size(), 1U);
  world.stop();
  EXPECT_EQ(code_of(subscription.poll()), Code::stopped);
  world.start();
  ASSERT_TRUE(world->create<counter>("d"));
  EXPECT_EQ(world->subscribe(subscription.cursor()).value().poll().value().front().key, "d");
}

TEST_F(EngineTest, WaitingForAStateEndsWhenItIsReached) {
  ASSERT_TRUE(world->create<member>("m"));
  world->submit(Transaction{}.send<member>("m", Promote{}), [](const auto&) {});
  EXPECT_EQ(world->wait<member>("m", 1min, Role::leader).value().state, Role::leader);
  const auto late = world->wait<member>("m", 1min, Role::follower);
  EXPECT_EQ(code_of(late), Code::timed_out);
  EXPECT_EQ(late.error().field("state"), "leader");
}

TEST_F(EngineTest, EphemeralValuesAreKeptBesideTheLog) {
  ASSERT_TRUE(world->create<counter>("c"));
  ASSERT_TRUE(world->put_ephemeral("counter", "c", "progress", "0.5"));
  EXPECT_EQ(world->ephemerals("counter", "c").value().at("progress"), "0.5");
  world.simulation().run_for(2s);
  world.restart();
  EXPECT_EQ(world->ephemerals("counter", "c").value().at("progress"), "0.5");
  EXPECT_EQ(world->get<counter>("c").value().version, 1);
  ASSERT_TRUE(world->put_ephemeral("counter", "c", "progress", ""));
  EXPECT_TRUE(world->ephemerals("counter", "c").value().empty());
}

TEST(EngineMemory, DataIsEvictedAtTheLimitAndReadBack) {
  World world(counters, {.cache_bytes = 100});
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(world->create<counter>("c" + std::to_string(i), {.sum = i}));
  EXPECT_LE(world->stats().cached_bytes, 100U);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(world->send<counter>("c" + std::to_string(i), Add{1}).value().data.sum, i + 1);
    EXPECT_EQ(world->get<counter>("c" + std::to_string(i)).value().data.sum, i + 1);
  }
}

TEST(EngineRetention, CutsHistoriesAndExpiresCursorsButKeepsInstances) {
  World world(counters, {.keep = 1h, .forget_finished = 1h});
  ASSERT_TRUE(world->create<counter>("c"));
  ASSERT_TRUE(world->create<counter>("done"));
  const auto cursor = [&] {
    auto subscription = world->subscribe("begin").value();
    (void)subscription.poll(1);
    return subscription.cursor();
  }();
  ASSERT_TRUE(world->send<counter>("c", Add{5}));
  ASSERT_TRUE(world->send<counter>("done", Close{}));
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->send<counter>("c", Add{1}));
  ASSERT_TRUE(world->retain());
  for (const bool restarted : {false, true}) {
    if (restarted) world.restart();
    EXPECT_EQ(world->get<counter>("c").value().data.sum, 6);
    const auto history = world->history("counter", "c").value();
    EXPECT_EQ(history.events.size(), 1U);
    EXPECT_TRUE(history.truncated);
    EXPECT_FALSE(world->get<counter>("done")) << "finished long ago, and forgotten";
    const auto expired = world->subscribe(cursor);
    ASSERT_FALSE(expired);
    EXPECT_EQ(expired.error().code(), Code::cursor_expired);
    EXPECT_TRUE(world->subscribe("begin"));
  }
  EXPECT_EQ(world->create<counter>("done").value().generation, 1);
}

TEST(EngineOpen, UnknownMachinesAndStatesAreReportedAndLeftUntouched) {
  bool reduced = false;
  World world([&] {
    Machines machines;
    machines.add<member>();
    if (!reduced) machines.add<counter>();
    return machines;
  });
  ASSERT_TRUE(world->create<counter>("c", {.sum = 9}));
  reduced = true;
  world.restart();
  EXPECT_THAT(world->report().unknown, ElementsAre("counter"));
  EXPECT_EQ(world->counts().at("counter").at("open"), 1U);
  reduced = false;
  world.restart();
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 9);
}

TEST(EngineOpen, TwoMachinesOfOneNameAreRefused) {
  Machines machines;
  machines.add<counter>().add<counter>();
  sim::Simulation simulation;
  const auto opened = Engine::open(simulation.spawn("p"), std::move(machines), {.store = "sqlite:x.db"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::duplicate_machine);
}

TEST(EngineOpen, AStoreAddressThatIsNotKnownIsRefused) {
  sim::Simulation simulation;
  const auto opened = Engine::open(simulation.spawn("p"), Machines{}, {.store = "mysql://x"});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), HasSubstr("expected \"sqlite:PATH\""));
}

}  // namespace
}  // namespace pawl::test
