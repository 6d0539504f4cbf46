// SPDX-License-Identifier: Apache-2.0
// A store that cannot be read temporarily decides nothing: messages, timers and results wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/engine/decide.hpp"
#include "pawl/engine.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test::transients {
namespace {

class TransientTest : public testing::TestWithParam<Code> {
 protected:
  void begin() {
    world_.emplace(
        [this] {
          Machines machines;
          machines.add<counter>().add<order>();
          machines.work<order, Charge>("charge",
                                       [this](const WorkContext& context, const Charge&) -> Result<Reply> {
                                         ++calls_;
                                         attempt_ = context.attempt;
                                         if (hold_) context_.wait(release_);
                                         return reply(Charged{std::string(context.key)});
                                       });
          return machines;
        },
        // Without a cache every decision reads the instance.
        EngineOptions{.cache_bytes = 0,
                      .schema = {{.text = "CREATE TABLE IF NOT EXISTS paid(receipt TEXT PRIMARY KEY)"}}},
        Beginning{.opener = opens<Unreadable>(fate_)});
  }
  struct Waiter {
    TransientTest& test;
    void wait(Gate& gate) const { test.world().process().wait(gate); }
  };
  World& world() { return *world_; }
  std::uint32_t granted() {
    std::uint32_t all = 0;
    for (const auto& pool : world()->pools()) all += pool.granted;
    return all;
  }

  ReadFate fate_;
  int calls_ = 0;
  std::uint32_t attempt_ = 0;
  bool hold_ = false;
  Gate release_;
  Waiter context_{*this};
  std::optional<World> world_;
};

TEST_P(TransientTest, AMessageWaitsUntilItsReceiverCanBeRead) {
  begin();
  ASSERT_TRUE(world()->create<counter>("till"));
  ASSERT_TRUE(world()->create<order>("o", {.cents = 5, .tell = "till"}));
  hold_ = true;
  ASSERT_TRUE(world()->send<order>("o", Place{}));
  world().simulation().run_until([&] { return calls_ == 1; });
  release_.open();
  ASSERT_TRUE(world()->wait<order>("o", 1min, Order::paid));
  fate_.now = GetParam();
  world().simulation().run_for(10s);
  fate_ = {};
  world().simulation().run_for(1min);
  EXPECT_EQ(world()->get<counter>("till").value().data.sum, 5);
}

TEST_P(TransientTest, ATimerFiresWhenItsInstanceCanBeReadAgain) {
  begin();
  hold_ = true;
  ASSERT_TRUE(world()->create<order>("o"));
  ASSERT_TRUE(world()->send<order>("o", Place{}));
  world().simulation().run_for(29min);
  fate_.now = GetParam();
  world().simulation().run_for(5min);
  fate_ = {};
  world().simulation().run_for(1min);
  EXPECT_EQ(world()->get<order>("o").value().state, Order::expired);
  release_.open();
}

TEST_P(TransientTest, AResultIsNotLostNorItsPermitKept) {
  begin();
  hold_ = true;
  ASSERT_TRUE(world()->create<order>("o"));
  ASSERT_TRUE(world()->send<order>("o", Place{}));
  world().simulation().run_until([&] { return calls_ == 1; });
  fate_.now = GetParam();
  release_.open();
  world().simulation().run_for(1min);
  fate_ = {};
  world().simulation().run_for(1min);
  EXPECT_EQ(world()->get<order>("o").value().state, Order::paid);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(granted(), 0U);
}

TEST_P(TransientTest, AnAttemptWhoseInstanceCannotBeReadDoesNotCountAsFailed) {
  begin();
  ASSERT_TRUE(world()->create<order>("o"));
  // The engine reads the order after that commit to start its work.
  fate_.after_commit = GetParam();
  ASSERT_TRUE(world()->send<order>("o", Place{}));
  world().simulation().run_for(10s);
  fate_ = {};
  world().simulation().run_for(1min);
  EXPECT_EQ(world()->get<order>("o").value().state, Order::paid);
  EXPECT_EQ(attempt_, 1U);
  EXPECT_EQ(granted(), 0U);
}

TEST_P(TransientTest, AClaimOfWorkThatIsGoneBeforeItCouldBeReadIsAnswered) {
  const auto elsewhere = [] {
    Machines machines;
    machines.add<order>();
    machines.work<order, Charge>("charge", [](const WorkContext&, const Charge&) { return no_reply(); },
                                 {.lease = 30s});
    return machines;
  };
  std::optional<bool> got;
  World remote{elsewhere, {.cache_bytes = 0}, {.opener = opens<Unreadable>(fate_)}};
  ASSERT_TRUE(remote->create<order>("o"));
  ASSERT_TRUE(remote->send<order>("o", Place{}));
  // The engine reads the order after that commit to start its work.
  fate_.after_commit = GetParam();
  remote->claim("order", {"charge"}, 1h, [&](const auto& outcome) { got = outcome && outcome->has_value(); });
  remote.simulation().run_for(100ms);
  EXPECT_FALSE(got);
  fate_ = {};
  ASSERT_TRUE(remote->send<order>("o", Expire{}));
  remote.simulation().run_for(1h);
  EXPECT_EQ(got, false);
}

INSTANTIATE_TEST_SUITE_P(Codes, TransientTest,
                         testing::Values(Code::store_io, Code::rolled_back, Code::disk_full),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST(BusyStore, IsAskedOnceForAWholeBatch) {
  BusyFate fate;
  World world{counters, {}, {.opener = opens<Busy>(fate)}};
  ASSERT_TRUE(world->create<counter>("c"));
  fate.busy = true;
  std::vector<Code> codes;
  ASSERT_TRUE(world->put_ephemeral("counter", "c", "seen", "1"));
  for (int i = 0; i < 100; ++i) {
    world->submit(Transaction{}.send<counter>("c", Add{1}),
                  [&](const auto& outcome) { codes.push_back(code_of(outcome)); });
  }
  world.simulation().run_until([&] { return codes.size() == 100; });
  EXPECT_EQ(fate.asked, 1);
  EXPECT_THAT(codes, testing::Each(Code::rolled_back));
  fate.busy = false;
  EXPECT_EQ(world->send<counter>("c", Add{1}).value().data.sum, 1);
  EXPECT_EQ(world->ephemerals("counter", "c").value().at("seen"), "1");
}

TEST(BusyStore, KeepsTheEnginesOwnRequestsOfAWholeBatchForLater) {
  BusyFate fate;
  World world{[] {
                Machines machines;
                machines.add<order>();
                machines.work<order, Charge>(
                    "charge", [](const WorkContext&, const Charge&) { return reply(Charged{"r"}); },
                    {.pool = "none"});
                return machines;
              },
              {.pools = {{"none", 1}}},
              {.opener = opens<Busy>(fate)}};
  for (const auto* key : {"a", "b", "c"}) ASSERT_TRUE(world->create<order>(key));
  for (const auto* key : {"a", "b", "c"}) ASSERT_TRUE(world->send<order>(key, Place{}));
  fate.busy = true;
  world.simulation().run_for(31min);
  fate.busy = false;
  world.simulation().run_for(1min);
  for (const auto* key : {"a", "b", "c"})
    EXPECT_NE(world->get<order>(key).value().state, Order::placed) << key;
}

/// Whether an internal command changes an order with this piece of work.
bool changes(WorkRecord work, const Command& request) {
  const Registry registry([] {
    Machines machines;
    machines.add<order>();
    return machines;
  }());
  Draft draft{.id = registry.id(0, "o"),
              .exists = true,
              .machine = 0,
              .state = 1,
              .version = 2,
              .key = "o",
              .data = HeadData("{}", nullptr),
              .extras = {.work = {std::move(work)}}};
  return decide(registry, draft, request, Time(1s)).value().has_value();
}

TEST(StaleRequest, ABeginningThatComesAfterItsAttemptChangesNothing) {
  const WorkRecord work{.number = 7, .name = "charge", .attempt = 1};
  EXPECT_FALSE(changes(work, BeginWork{.number = 7, .after = 0}));
  EXPECT_TRUE(changes(work, BeginWork{.number = 7, .after = 1}));
}

TEST(StaleRequest, ABeginningOfWorkThatWasStoppedMeanwhileChangesNothing) {
  const WorkRecord work{.number = 7, .name = "charge", .attempt = 1, .stop = WorkStop::when_idle};
  EXPECT_FALSE(changes(work, BeginWork{.number = 7, .after = 1}));
}

TEST(StaleRequest, TheEndOfAnEarlierAttemptChangesNothing) {
  const WorkRecord work{.number = 7, .name = "charge", .attempt = 2};
  EXPECT_FALSE(changes(work, FinishWork{.number = 7, .attempt = 1, .event = {}}));
  EXPECT_TRUE(changes(work, FinishWork{.number = 7, .attempt = 2, .event = {}}));
  const Error late(Code::timed_out, "late");
  EXPECT_FALSE(changes(work, FailWork{7, 1, late, Duration{}, std::nullopt}));
  EXPECT_TRUE(changes(work, FailWork{7, 2, late, Duration{}, std::nullopt}));
}

}  // namespace
}  // namespace pawl::test::transients
