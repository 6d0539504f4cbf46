// SPDX-License-Identifier: Apache-2.0
// A failing or full disk: errors for callers, what is kept, and how the engine recovers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/ledger.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {
namespace {

using sim::FailedSync;
using sim::Failure;
using sim::Unsynced;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

using DiskOperation = sim::Operation;

std::uint64_t used_bytes(const sim::Disk& disk) {
  std::uint64_t bytes = 0;
  for (const auto& name : disk.files()) bytes += disk.read_file(name).value().size();
  return bytes;
}

/// A failing write of the WAL, and a failing sync of it of either kind.
class EnginePoisoned : public testing::TestWithParam<sim::DiskFault> {
 protected:
  EnginePoisoned() { EXPECT_TRUE(world->create<counter>("c")); }
  World world{counters};
};

TEST_P(EnginePoisoned, UnansweredRequestsHaveAnUnknownOutcomeAndLaterOnesAreRefused) {
  std::vector<Code> codes;
  const auto note = [&](const auto& outcome) { codes.push_back(code_of(outcome)); };
  world.disk().fail_next(GetParam());
  for (int i = 0; i < 3; ++i) world->submit(Transaction{}.send<counter>("c", Add{1}), note);
  world.simulation().run_until([&] { return codes.size() == 3; });
  EXPECT_THAT(codes, Each(Code::outcome_unknown));
  EXPECT_EQ(code_of(world->send<counter>("c", Add{1})), Code::store_poisoned);
}

TEST_P(EnginePoisoned, NothingIsRefusedForAnyOtherReason) {
  world.disk().fail_next(GetParam());
  EXPECT_FALSE(world->send<counter>("c", Add{1}));
  EXPECT_EQ(code_of(world->send<counter>("c", Add{0})), Code::store_poisoned);
  EXPECT_EQ(code_of(world->create<counter>("c")), Code::store_poisoned);
}

TEST_P(EnginePoisoned, NobodyWaitsForWhatCannotHappenAnyMore) {
  auto subscription = world->subscribe("").value();
  world.disk().fail_next(GetParam());
  EXPECT_FALSE(world->send<counter>("c", Add{1}));
  EXPECT_EQ(code_of(subscription.next()), Code::store_poisoned);
  EXPECT_EQ(code_of(world->wait_for("counter", "c", {"closed"}, std::nullopt)), Code::store_poisoned);
}

TEST_P(EnginePoisoned, ReadsStillAnswerWhatIsDurable) {
  world.disk().fail_next(GetParam());
  EXPECT_FALSE(world->send<counter>("c", Add{1}));
  const auto found = world->get<counter>("c").value();
  EXPECT_EQ(found.version, 1);
  EXPECT_EQ(found.data.sum, 0);
  EXPECT_EQ(world->counts().at("counter").at("open"), 1U);
}

TEST_P(EnginePoisoned, NothingIsWrittenOrSyncedAgainUntilItIsReopened) {
  world.disk().fail_next(GetParam());
  EXPECT_FALSE(world->send<counter>("c", Add{1}));
  const auto writes = world.disk().writes();
  const auto syncs = world.disk().syncs();
  EXPECT_FALSE(world->send<counter>("c", Add{1}));
  world.simulation().run_for(1min);
  EXPECT_EQ(world.disk().writes(), writes);
  EXPECT_EQ(world.disk().syncs(), syncs);
}

TEST_P(EnginePoisoned, ReopeningShowsTheRequestOnceOrNotAtAllAndARepeatSettlesIt) {
  for (const auto unsynced : {Unsynced::keep_none, Unsynced::keep_all, Unsynced::random}) {
    world.disk().fail_next(GetParam());
    const auto before = world->get<counter>("c").value();
    const auto id = "request " + std::to_string(static_cast<int>(unsynced));
    EXPECT_EQ(code_of(world->send<counter>("c", Add{1}, {.request_id = id})), Code::outcome_unknown);
    world.power_cut(unsynced);
    world.start();
    EXPECT_THAT(world->get<counter>("c").value().data.sum, AnyOf(before.data.sum, before.data.sum + 1));
    EXPECT_EQ(world->send<counter>("c", Add{1}, {.request_id = id}).value().data.sum, before.data.sum + 1);
    EXPECT_EQ(world->get<counter>("c").value().version, before.version + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, EnginePoisoned,
                         testing::Values(sim::DiskFault{.on = DiskOperation::write, .suffix = "-wal"},
                                         sim::DiskFault{.on = DiskOperation::sync, .suffix = "-wal"},
                                         sim::DiskFault{.on = DiskOperation::sync,
                                                        .suffix = "-wal",
                                                        .failed_sync = FailedSync::keeps_writes}),
                         [](const auto& fault) {
                           if (fault.param.on == DiskOperation::write) return "write";
                           return fault.param.failed_sync == FailedSync::loses_writes ? "sync"
                                                                                      : "sync_keeping";
                         });

/// Does a short run with the fault, then cuts the power and opens the store again. False: the run ended
/// before the fault occurred.
bool survive(const sim::DiskFault& fault, Unsynced unsynced) {
  Ledger ledger;
  World world(ledger_machines, ledger_options(), {.seed = fault.nth});
  ledger.begin(world);
  world.disk().fail_next(fault);
  for (int i = 0; i < 6; ++i) {
    ledger.burst(world, 4, true);
    world.simulation().run_for(100ms);
  }
  const bool struck = !ledger.errors().empty();
  EXPECT_THAT(ledger.errors(),
              Each(testing::Property(&Error::code, AnyOf(Code::outcome_unknown, Code::store_poisoned))));
  world.disk().clear_faults();
  world.power_cut(unsynced);
  world.start();
  EXPECT_THAT(audit_ledger(world, ledger.acknowledged(), ledger.acknowledged().size()).problems, IsEmpty());
  EXPECT_THAT(settle_ledger(world), IsEmpty());
  return struck;
}

TEST(EngineFault, WhateverWriteOrSyncOfARunFailsNothingAcknowledgedIsLost) {
  for (const auto operation : {DiskOperation::write, DiskOperation::sync}) {
    std::size_t struck = 0;
    // Some faults hit irrelevant files; many in a row without effect mean the end of the run.
    std::size_t idle = 0;
    for (std::size_t nth = 1; idle < 40 && !testing::Test::HasFailure(); nth += 1 + nth / 8) {
      SCOPED_TRACE(testing::Message() << "operation " << static_cast<int>(operation) << " no. " << nth);
      const auto unsynced = nth % 2 == 0 ? Unsynced::random : Unsynced::keep_none;
      const bool hit = survive({.on = operation, .nth = nth}, unsynced);
      struck += hit ? 1 : 0;
      idle = hit ? 0 : idle + 1;
    }
    EXPECT_GT(struck, 10U);
  }
}

TEST(EngineFault, AFaultWhileOpeningIsReportedAndTheNextOpeningIsWhole) {
  std::size_t refused = 0;
  for (const auto operation :
       {DiskOperation::open, DiskOperation::read, DiskOperation::write, DiskOperation::sync}) {
    for (std::size_t nth = 1; nth <= 25; ++nth) {
      SCOPED_TRACE(testing::Message() << "operation " << static_cast<int>(operation) << " no. " << nth);
      Ledger ledger;
      World world(ledger_machines, ledger_options(), {.seed = nth});
      ledger.begin(world);
      ledger.burst(world, 20);
      world.kill();
      world.disk().fail_next({.on = operation, .nth = nth});
      if (const auto opened = world.try_start(); !opened) {
        ++refused;
        EXPECT_EQ(opened.error().code(), Code::store_io) << opened.error().to_string();
        world.disk().clear_faults();
        world.start();
      }
      world.disk().clear_faults();
      world.power_cut(Unsynced::keep_none);
      world.start();
      ASSERT_THAT(audit_ledger(world, ledger.acknowledged(), ledger.acknowledged().size()).problems,
                  IsEmpty());
    }
  }
  EXPECT_GT(refused, 10U);
}

TEST(EngineFault, WhatAnOpeningHasShownIsDurableAlsoWhenItsFirstSyncsFailed) {
  // The process dies between writing a commit and syncing it. The next one finds the commit and must sync it
  // before it serves it.
  for (std::size_t nth = 0; nth <= 6; ++nth) {
    SCOPED_TRACE(testing::Message() << "sync no. " << nth << " of the opening fails");
    World world(counters);
    ASSERT_TRUE(world->create<counter>("c"));
    std::optional<sim::DiskImage> written;
    world.disk().on_sync([&](const sim::SyncPoint& point) {
      if (point.moment == sim::Moment::before) written = world.disk().snapshot();
    });
    ASSERT_TRUE(world->send<counter>("c", Add{5}));
    world.disk().on_sync({});
    ASSERT_TRUE(written);
    world.kill();
    world.disk().restore(*written);
    if (nth > 0) world.disk().fail_next({.on = DiskOperation::sync, .nth = nth});
    std::optional<int> shown;
    if (world.try_start()) shown = world->get<counter>("c").value().data.sum;
    world.disk().clear_faults();
    world.power_cut(Unsynced::keep_none);
    world.start();
    if (shown) {
      EXPECT_EQ(world->get<counter>("c").value().data.sum, *shown);
    }
  }
}

TEST(EngineFault, AnErrorWhileReadingEvictedDataConcernsThatReadAlone) {
  World world(counters, {.cache_bytes = 0});
  ASSERT_TRUE(world->create<counter>("c"));
  world.disk().fail_next({.on = DiskOperation::read});
  EXPECT_EQ(code_of(world->get<counter>("c")), Code::store_io);
  EXPECT_EQ(world->get<counter>("c").value().version, 1);
  ASSERT_TRUE(world->send<counter>("c", Add{1}));
  world.disk().fail_next({.on = DiskOperation::read});
  EXPECT_EQ(code_of(world->send<counter>("c", Add{1})), Code::store_io);
  EXPECT_EQ(world->send<counter>("c", Add{1}).value().data.sum, 2) << "the engine is not poisoned by it";
}

TEST(EngineFault, ATimerWhoseInstanceCannotBeReadIsFiredALittleLater) {
  auto options = ledger_options();
  options.cache_bytes = 0;
  World world(ledger_machines, options);
  ASSERT_TRUE(world->create<order>("o", {.cents = 7}));
  ASSERT_TRUE(world->send<order>("o", Place{}));
  world.simulation().run_for(29min);
  world.disk().fail_next({.on = DiskOperation::read});
  world.simulation().run_for(2min);
  world.disk().clear_faults();
  EXPECT_EQ(world->get<order>("o").value().state, Order::expired);
  EXPECT_EQ(world->history("order", "o").value().events.front().event, "Expire");
}

TEST(EngineFault, ATornTailEndsTheLogAtItsLastWholeCommit) {
  World world(counters);
  ASSERT_TRUE(world->create<counter>("c"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world->send<counter>("c", Add{1}));
  world.kill();
  const auto size = world.disk().read_file("world.db-wal").value().size();
  ASSERT_TRUE(world.disk().flip("world.db-wal", size - 100));
  world.start();
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 2);
  EXPECT_EQ(world->send<counter>("c", Add{1}).value().version, 4);
}

TEST(EngineFault, ADamagedFileIsRefusedAtOpening) {
  World world(counters);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(world->create<counter>("c" + std::to_string(i)));
  world.stop();
  const auto sound = world.disk().snapshot();
  const auto size = world.disk().read_file("world.db").value().size();
  std::size_t refused = 0;
  for (std::uint64_t page = 0; page < size; page += 4096) {
    SCOPED_TRACE(testing::Message() << "page at " << page);
    world.disk().restore(sound);
    ASSERT_TRUE(world.disk().flip("world.db", page, 0xff));
    const auto opened = world.try_start();
    refused += opened ? 0 : 1;
    if (!opened) {
      EXPECT_EQ(opened.error().code(), Code::store_corrupt) << opened.error().to_string();
    }
    world.stop();
  }
  EXPECT_GE(refused, 3U);
}

// A full disk.

class EngineFull : public testing::Test {
 protected:
  void begin(World::MakeMachines machines, EngineOptions options = {}) {
    world.emplace(std::move(machines), std::move(options));
  }
  void fill() { world->disk().set_capacity(used_bytes(world->disk())); }
  void make_room() { world->disk().set_capacity(std::nullopt); }
  Engine& engine() { return world->engine(); }

  std::optional<World> world;
};

TEST_F(EngineFull, CallersAreToldNothingIsAppliedAndItGoesOnWhenThereIsRoom) {
  begin(counters);
  ASSERT_TRUE(engine().create<counter>("c"));
  fill();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(code_of(engine().send<counter>("c", Add{1}, {.request_id = "r"})), Code::disk_full);
  EXPECT_EQ(engine().get<counter>("c").value().version, 1);
  make_room();
  EXPECT_EQ(engine().send<counter>("c", Add{1}, {.request_id = "r"}).value().version, 2);
  world->restart();
  EXPECT_EQ(engine().get<counter>("c").value().data.sum, 1);
}

TEST_F(EngineFull, TimersWorkAndMessagesWaitForRoom) {
  begin(ledger_machines, ledger_options());
  ASSERT_TRUE(engine().create<counter>("takings"));
  ASSERT_TRUE(engine().create<order>("paid", {.cents = 1, .tell = "takings"}));
  ASSERT_TRUE(engine().create<order>("expired", {.cents = 7}));
  ASSERT_TRUE(engine().send<order>("expired", Place{}));
  ASSERT_TRUE(engine().send<order>("paid", Place{}));
  fill();
  world->simulation().run_for(40min);
  EXPECT_EQ(engine().get<order>("paid").value().state, Order::placed);
  EXPECT_EQ(engine().get<order>("expired").value().state, Order::placed);
  make_room();
  world->simulation().run_for(10s);
  EXPECT_EQ(engine().get<order>("paid").value().state, Order::paid)
      << "the work was done before the deadline";
  EXPECT_EQ(engine().get<order>("expired").value().state, Order::expired);
  EXPECT_EQ(engine().get<counter>("takings").value().data.sum, 1);
}

TEST_F(EngineFull, WorkAskedForInVainIsRunOnceWhenItIsAskedForAgain) {
  int running = 0;
  int most = 0;
  std::vector<std::uint32_t> attempts;
  begin(
      [&] {
        Machines made;
        made.add<counter>().add<order>();
        made.work<order, Charge>("charge",
                                 [&](const WorkContext& context, const Charge&) -> Result<Reply> {
                                   attempts.push_back(context.attempt);
                                   most = std::max(most, ++running);
                                   Gate never;
                                   world->process().wait(never, 1s);
                                   --running;
                                   return reply(Charged{std::string(context.key)});
                                 },
                                 {.pool = "bank"});
        return made;
      },
      {.pools = {{"bank", 1}}, .schema = ledger_options().schema});
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(engine().create<order>(key));
  const auto place_all = [&] {
    std::vector<Code> codes;
    for (const char* key : {"a", "b", "c"}) {
      engine().submit(Transaction{}.send<order>(key, Place{}),
                      [&](const auto& outcome) { codes.push_back(code_of(outcome)); });
    }
    world->simulation().run_until([&] { return codes.size() == 3; });
    return codes;
  };
  fill();
  EXPECT_THAT(place_all(), Each(Code::disk_full));
  make_room();
  EXPECT_THAT(place_all(), Each(static_cast<Code>(0)));
  world->simulation().run_for(1min);
  EXPECT_THAT(attempts, ElementsAre(1U, 1U, 1U));
  EXPECT_EQ(most, 1);
  EXPECT_EQ(engine().counts().at("order").at("paid"), 3U);
}

TEST_F(EngineFull, EphemeralValuesWaitForRoom) {
  begin(counters);
  ASSERT_TRUE(engine().create<counter>("c"));
  ASSERT_TRUE(engine().put_ephemeral("counter", "c", "progress", "0.5"));
  fill();
  world->simulation().run_for(5s);
  EXPECT_EQ(engine().ephemerals("counter", "c").value().at("progress"), "0.5");
  make_room();
  world->simulation().run_for(5s);
  world->restart();
  EXPECT_EQ(engine().ephemerals("counter", "c").value().at("progress"), "0.5");
}

TEST_F(EngineFull, AtWhateverPointOfARunItBecomesFullNothingIsLostOrDoubled) {
  std::size_t refusals = 0;
  for (std::uint64_t spare = 0; spare < 600'000; spare += 1'000 + spare / 8) {
    SCOPED_TRACE(testing::Message() << spare << " bytes to spare");
    Ledger ledger;
    World full(ledger_machines, ledger_options());
    ledger.begin(full);
    full.disk().set_capacity(used_bytes(full.disk()) + spare);
    for (int i = 0; i < 6; ++i) {
      ledger.burst(full, 4, true);
      full.simulation().run_for(100ms);
    }
    refusals += ledger.errors().size();
    // An order that could not be created cannot be placed either.
    ASSERT_THAT(ledger.errors(),
                Each(testing::Property(&Error::code, AnyOf(Code::disk_full, Code::unknown_instance))));
    full.disk().set_capacity(std::nullopt);
    ASSERT_THAT(settle_ledger(full), IsEmpty());
    const auto count = ledger.acknowledged().size();
    ASSERT_THAT(audit_ledger(full, ledger.acknowledged(), count, true).problems, IsEmpty());
    full.power_cut(Unsynced::keep_none);
    full.start();
    ASSERT_THAT(audit_ledger(full, ledger.acknowledged(), count, true).problems, IsEmpty());
  }
  EXPECT_GT(refusals, 10U);
}

TEST_F(EngineFull, AtOpeningRecoveryIsDoneOrTheOpeningIsRefused) {
  begin(counters);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(engine().create<member>("m" + std::to_string(i)));
    ASSERT_TRUE(engine().send<member>("m" + std::to_string(i), Promote{}));
  }
  world->kill();
  const auto image = world->disk().snapshot();
  std::size_t refused = 0;
  std::size_t served = 0;
  const auto used = used_bytes(world->disk());
  for (std::uint64_t capacity = 0; capacity < 2 * used; capacity += used / 60) {
    SCOPED_TRACE(testing::Message() << capacity << " bytes");
    world->disk().restore(image);
    world->disk().set_capacity(capacity);
    const auto opened = world->try_start();
    ++(opened ? served : refused);
    if (opened) {
      EXPECT_EQ(engine().counts().at("member").at("leader"), 0U);
      EXPECT_EQ(engine().report().recovered, 40U);
    } else {
      EXPECT_EQ(opened.error().code(), Code::disk_full) << opened.error().to_string();
    }
    world->disk().set_capacity(std::nullopt);
    world->stop();
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(served, 0U);
}

}  // namespace
}  // namespace pawl::test
