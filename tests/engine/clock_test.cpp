// SPDX-License-Identifier: Apache-2.0
// Clocks that jump and commands that come too late: waits keep their length, and obsolete commands change
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/atomic.hpp"
#include "pawl/engine.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test::clocks {
namespace {

enum class Egg { raw, boiled };
struct Boil {
  int minutes = 0;
};
struct Ring {};
constexpr auto egg = machine<Egg, Total>("egg")
                         .initial(Egg::raw)
                         .stay<Boil>(Egg::raw,
                                     [](Total& total, const Boil& boil, Effects& effects) {
                                       ++total.sum;
                                       effects.set_timer("done", std::chrono::minutes(boil.minutes), Ring{});
                                     })
                         .on<Ring>(Egg::raw, Egg::boiled)
                         .terminal(Egg::boiled);
static_assert(verified<egg>);

class ClockTest : public testing::Test {
 protected:
  void begin(EngineOptions options = {}, std::uint64_t seed = 1) {
    options.schema = {{.text = "CREATE TABLE IF NOT EXISTS paid(receipt TEXT PRIMARY KEY)"}};
    world_.emplace(
        [this] {
          Machines machines;
          machines.add<counter>().add<member>().add<order>().add<egg>();
          machines.work<order, Charge>("charge",
                                       [this](const WorkContext& context, const Charge&) -> Result<Reply> {
                                         ++calls_;
                                         if (calls_ == 1) return fail(Code::timed_out, "the bank is busy");
                                         return reply(Charged{std::string(context.key)});
                                       },
                                       {.retry = {.retries = 3, .first = 10s, .jitter = Jitter::none}});
          return machines;
        },
        std::move(options), Beginning{.seed = seed});
  }
  World& world() { return *world_; }

  int calls_ = 0;
  std::optional<World> world_;
};

TEST_F(ClockTest, ARetryWaitsNoLongerThanItsDelayAfterTheClockWasSetBackAndTheProgramRestarted) {
  begin();
  ASSERT_TRUE(world()->create<order>("o"));
  ASSERT_TRUE(world()->send<order>("o", Place{}));
  world().simulation().run_until([&] { return calls_ == 1; });
  world().simulation().run_for(1s);
  world().kill();
  world().start();
  // The clock of the next process is a day behind; the retry must not wait that day.
  world().process().jump_clock(-24h);
  world().simulation().run_for(15s);
  EXPECT_EQ(calls_, 2);
}

TEST_F(ClockTest, ARetryThatIsScheduledWithAClockFarBehindTheLogWaitsItsDelayOnly) {
  begin();
  ASSERT_TRUE(world()->create<order>("o"));
  world().process().jump_clock(-24h);  // before the work fails: the log is a day ahead of the clock
  ASSERT_TRUE(world()->send<order>("o", Place{}));
  world().simulation().run_until([&] { return calls_ == 1; });
  world().simulation().run_for(11s);
  EXPECT_EQ(calls_, 2);
}

TEST_F(ClockTest, ATimerThatIsSetWithAClockFarBehindTheLogWaitsItsTimeOnly) {
  begin();
  ASSERT_TRUE(world()->create<egg>("e"));
  world().process().jump_clock(-24h);
  ASSERT_TRUE(world()->send<egg>("e", Boil{5}));
  world().simulation().run_for(6min);
  EXPECT_EQ(world()->get<egg>("e").value().state, Egg::boiled);
}

TEST_F(ClockTest, ATimerThatFallsDueWhileItsResetIsQueuedAheadDoesNotFire) {
  int resets = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    // Batches of one: the first commit finds the timer due and queues it behind the reset.
    begin({.batch = 1}, seed);
    ASSERT_TRUE(world()->create<egg>("e"));
    ASSERT_TRUE(world()->create<counter>("c"));
    ASSERT_TRUE(world()->send<egg>("e", Boil{5}));
    auto lane = world().process().open_lane("test");
    lane->after(5min, [&] {
      world()->submit(Transaction{}.send<counter>("c", Add{1}), [](const auto&) {});
      world()->submit(Transaction{}.send<egg>("e", Boil{5}), [](const auto&) {});
    });
    world().simulation().run_for(5min + 1s);
    // Either of two events at the same instant may come first; the reset then replaces the timer.
    const auto present = world()->get<egg>("e").value();
    const bool reset = present.data.sum == 2;
    resets += reset ? 1 : 0;
    EXPECT_EQ(present.state, reset ? Egg::raw : Egg::boiled) << "seed " << seed;
    world().simulation().run_for(5min);
    EXPECT_EQ(world()->get<egg>("e").value().state, Egg::boiled) << "seed " << seed;
    lane.reset();
  }
  EXPECT_GT(resets, 0) << "no seed puts the reset first";
}

TEST_F(ClockTest, AChangeOfAPartitionThatTheOpenBatchHasChangedIsTriedAgain) {
  begin();
  ASSERT_TRUE(world()->create<member>("a", {}, {.partition = "g"}));
  ASSERT_TRUE(world()->create<member>("b", {}, {.partition = "g"}));
  // Both read a partition without a leader and send their events in one batch.
  int rounds = 0;
  const auto outcome = world()->atomically("g", [&](Atomic& atomic) -> Result<void> {
    const bool led = atomic.get<member>("b").value().state == Role::leader;
    if (++rounds == 1) world()->submit(Transaction{}.send<member>("b", Promote{}), [](const auto&) {});
    if (!led) atomic.send<member>("a", Promote{});
    return {};
  });
  ASSERT_TRUE(outcome);
  world().simulation().run_for(1s);
  EXPECT_EQ(rounds, 2);
  EXPECT_EQ(world()->get<member>("a").value().state, Role::follower);
  EXPECT_EQ(world()->get<member>("b").value().state, Role::leader);
}

}  // namespace
}  // namespace pawl::test::clocks
