// SPDX-License-Identifier: Apache-2.0
// A store's lease that runs out: no call waits forever for a former owner, and an owner whose lease is
// renewed goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/engine.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test::lapses {
namespace {

class LapseTest : public testing::Test {
 protected:
  LapseTest() { EXPECT_TRUE(world->create<counter>("c")); }

  Machines machines() {
    Machines made;
    made.add<counter>().add<order>();
    made.work<order, Charge>("charge", [this](const WorkContext& context, const Charge&) -> Result<Reply> {
      Gate never;
      while (!context.stop.stop_requested()) world.process().wait(never, 1s);
      stopped_ = true;
      return fail(Code::cancelled, "asked to stop");
    });
    return made;
  }

  LeaseFate fate;
  bool stopped_ = false;
  World world{[this] { return machines(); }, {}, {.opener = opens<Leased>(fate)}};
};

TEST_F(LapseTest, WhoWaitsForAStateWithoutATimeoutIsToldOfATakeover) {
  std::optional<Code> told;
  world->wait_for("counter", "c", {"closed"}, std::nullopt,
                  [&](const auto& outcome) { told = code_of(outcome); });
  world.simulation().run_for(1min);
  ASSERT_FALSE(told);
  fate.ended = true;
  world.simulation().run_for(1min);
  EXPECT_EQ(told, Code::store_fenced);
}

TEST_F(LapseTest, ABlockedWaiterIsToldOfATakeover) {
  auto lane = world.process().open_lane("test");
  lane->after(1min, [&] { fate.ended = true; });
  EXPECT_EQ(code_of(world->wait_for("counter", "c", {"closed"}, std::nullopt)), Code::store_fenced);
  auto subscription = world->subscribe("");
  EXPECT_EQ(code_of(subscription->next()), Code::store_fenced);
}

TEST_F(LapseTest, WhoAsksForAStateThatIsReachedIsNotAnsweredWithoutTheLease) {
  fate.lapsed = true;
  std::optional<Code> told;
  world->wait_for("counter", "c", {"open"}, std::nullopt,
                  [&](const auto& outcome) { told = code_of(outcome); });
  world.simulation().run_for(1s);
  EXPECT_EQ(told, Code::store_fenced);
}

TEST_F(LapseTest, NothingIsRefusedByWhatIsInMemoryWithoutTheLease) {
  fate.lapsed = true;
  EXPECT_EQ(code_of(world->send<counter>("c", Add{0})), Code::store_fenced);
  fate.lapsed = false;
  EXPECT_EQ(code_of(world->send<counter>("c", Add{0})), Code::guard_refused);
}

TEST_F(LapseTest, AClaimThatWaitsIsToldOfATakeover) {
  const auto elsewhere = [] {
    Machines machines;
    machines.add<order>();
    machines.work<order, Charge>("charge", [](const WorkContext&, const Charge&) { return no_reply(); },
                                 {.lease = 30s});
    return machines;
  };
  std::optional<Code> told;
  World remote{elsewhere, {}, {.opener = opens<Leased>(fate)}};
  remote->claim("order", {"charge"}, 24h, [&](const auto& outcome) { told = code_of(outcome); });
  remote.simulation().run_for(1min);
  ASSERT_FALSE(told);
  fate.ended = true;
  remote.simulation().run_for(1min);
  EXPECT_EQ(told, Code::store_fenced);
  EXPECT_EQ(code_of(remote->claim("order", {"charge"}, 24h)), Code::store_fenced);
}

TEST_F(LapseTest, AHandlerIsAskedToStopWhenAnotherOwnerHasTakenOver) {
  ASSERT_TRUE(world->create<order>("o"));
  ASSERT_TRUE(world->send<order>("o", Place{}));
  world.simulation().run_for(1min);
  ASSERT_FALSE(stopped_);
  fate.ended = true;
  world.simulation().run_for(1min);
  EXPECT_TRUE(stopped_);
}

TEST_F(LapseTest, ALeaseThatComesBackGoesOnWithItsWorkAndItsTimers) {
  ASSERT_TRUE(world->create<order>("o"));
  ASSERT_TRUE(world->send<order>("o", Place{}));
  world.simulation().run_for(29min);
  fate.lapsed = true;
  world.simulation().run_for(5min);
  EXPECT_FALSE(stopped_);
  fate.lapsed = false;
  world.simulation().run_for(1min);
  EXPECT_EQ(world->get<order>("o").value().state, Order::expired);
  EXPECT_TRUE(world->send<counter>("c", Add{1}));
}

/// A recorded attempt that could not start because its instance could not be read.
class DelayedAttemptTest : public testing::Test {
 protected:
  DelayedAttemptTest() {
    EXPECT_TRUE(world->create<order>("o"));
    // The engine reads the order after that commit to start its work.
    reading.after_commit = Code::store_io;
    EXPECT_TRUE(world->send<order>("o", Place{}));
    world.simulation().run_for(100ms);
    EXPECT_EQ(calls, 0);
  }

  Machines machines() {
    Machines made;
    made.add<order>();
    made.work<order, Charge>("charge", [this](const WorkContext&, const Charge&) -> Result<Reply> {
      ++calls;
      return no_reply();
    });
    return made;
  }

  LeaseFate fate;
  ReadFate reading;
  int calls = 0;
  World world{
      [this] { return machines(); },
      {.cache_bytes = 0},
      {.opener = [this](Runtime& runtime, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
        PAWL_TRY(auto store, open_store(runtime, options));
        return std::make_unique<Leased>(std::make_unique<Unreadable>(std::move(store), reading), fate);
      }}};
};

TEST_F(DelayedAttemptTest, DoesNotBeginAfterAnotherOwnerHasTakenOver) {
  fate.ended = true;
  reading = {};
  world.simulation().run_for(1min);
  EXPECT_EQ(calls, 0);
}

TEST_F(DelayedAttemptTest, BeginsOnceTheLeaseHasComeBack) {
  fate.lapsed = true;
  reading = {};
  world.simulation().run_for(1min);
  EXPECT_EQ(calls, 0);
  fate.lapsed = false;
  world.simulation().run_for(1min);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace pawl::test::lapses
