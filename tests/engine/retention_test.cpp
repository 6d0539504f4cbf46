// SPDX-License-Identifier: Apache-2.0
// What retention may forget: only the engine decides, and the store keeps every head that the engine keeps.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

#include "kernel/engine/retention_clock.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {
namespace {

// A sale that sends a message to a counter when it ends.
enum class Sale { open, sold };
struct Sell {
  int amount = 0;
};
struct Till {
  std::string counter;
};
constexpr auto sale = machine<Sale, Till>("sale")
                          .initial(Sale::open)
                          .on<Sell>(Sale::open, Sale::sold,
                                    [](Till& till, const Sell& sell, Effects& effects) {
                                      effects.send<counter>(till.counter, Add{sell.amount});
                                    })
                          .terminal(Sale::sold);
static_assert(verified<sale>);

Machines sales() {
  Machines machines;
  machines.add<sale>().add<counter>();
  return machines;
}

/// Has no space for entries of counters while `full` is set, so messages to them wait.
class FullForCounters final : public StoreAround {
 public:
  FullForCounters(std::unique_ptr<Store> inside, const bool& full)
      : StoreAround(std::move(inside)), full_(full) {}

  Result<Seq> apply(const Write& write) override {
    const bool counts =
        std::ranges::any_of(write.entries, [](const auto& entry) { return entry.machine == "counter"; });
    if (full_ && counts) {
      inside_->discard();
      return fail(Code::disk_full, "no room for counters");
    }
    return inside_->apply(write);
  }

 private:
  const bool& full_;
};

StoreOpener full_for_counters(const bool& full) {
  return [&full](Runtime& runtime, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
    PAWL_TRY(auto store, open_store(runtime, options));
    return std::make_unique<FullForCounters>(std::move(store), full);
  };
}

/// How many messages the counter "c" has received.
std::ptrdiff_t times_told(World& world) {
  const auto history = world->history("counter", "c").value();
  return std::ranges::count_if(history.events, [](const auto& event) { return event.event == "Add"; });
}

class UnsentMessage : public testing::TestWithParam<bool> {};

TEST_P(UnsentMessage, KeepsItsFinishedSenderAndIsDeliveredOnce) {
  bool full = false;
  World world(sales, {.forget_finished = 1h}, {.opener = full_for_counters(full)});
  ASSERT_TRUE(world->create<counter>("c"));
  ASSERT_TRUE(world->create<sale>("s", {.counter = "c"}));
  full = true;
  ASSERT_TRUE(world->send<sale>("s", Sell{5}));
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->retain());
  ASSERT_TRUE(world->get<sale>("s")) << "its message was not delivered yet";
  const bool restarts_first = GetParam();
  if (restarts_first) world.restart();
  full = false;
  world.simulation().run_for(5s);
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 5);
  world.stop();
  world.start();
  world.simulation().run_for(5s);
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 5);
  EXPECT_EQ(times_told(world), 1);
  EXPECT_THAT(world->check().value(), testing::IsEmpty());
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->retain());
  EXPECT_EQ(code_of(world->get<sale>("s")), Code::unknown_instance) << "nothing holds it any more";
}

INSTANTIATE_TEST_SUITE_P(EngineRetention, UnsentMessage, testing::Bool(),
                         [](const auto& info) { return info.param ? "AfterACrash" : "InOneRun"; });

TEST(EngineRetention, KeepsFinishedInstancesOfMachinesItDoesNotKnow) {
  bool reduced = false;
  World world(
      [&] {
        Machines machines;
        machines.add<member>();
        if (!reduced) machines.add<counter>();
        return machines;
      },
      {.forget_finished = 1h});
  ASSERT_TRUE(world->create<counter>("c", {.sum = 9}));
  ASSERT_TRUE(world->send<counter>("c", Close{}));
  reduced = true;
  world.restart();
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->create<member>("m"));
  ASSERT_TRUE(world->retain());
  reduced = false;
  world.restart();
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 9);
}

TEST(EngineRetention, ForgetsAFinishedInstanceWhoseEntriesWereCutAwayBefore) {
  World world(counters, {.keep = 1h, .forget_finished = 3h, .retain_every = 24h});
  ASSERT_TRUE(world->create<counter>("done"));
  ASSERT_TRUE(world->send<counter>("done", Close{}));
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->retain());
  EXPECT_TRUE(world->get<counter>("done"));
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->retain());
  EXPECT_EQ(code_of(world->get<counter>("done")), Code::unknown_instance);
}

/// Runs a hook after the engine has taken a head from memory and before the store reads its entry.
class Interrupted final : public StoreAround {
 public:
  using Hook = std::function<void()>;
  Interrupted(std::unique_ptr<Store> inside, Hook& before_reading, Hook& after_forgetting)
      : StoreAround(std::move(inside)),
        before_reading_(before_reading),
        after_forgetting_(after_forgetting) {}

  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq) override {
    if (before_reading_) std::exchange(before_reading_, {})();
    return StoreAround::head_entry(id, seq);
  }
  Result<void> forget(std::span<const InstanceId> ids) override {
    auto done = StoreAround::forget(ids);
    if (after_forgetting_) std::exchange(after_forgetting_, {})();
    return done;
  }

 private:
  Hook& before_reading_;
  Hook& after_forgetting_;
};

/// Counters whose data is not in memory, with a hook before the store reads it.
class ReadBesideRetention : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_->create<counter>("c", {.sum = 1}));
    ASSERT_TRUE(world_->create<counter>("done", {.sum = 2}));
    ASSERT_TRUE(world_->send<counter>("done", Close{}));
    world_.simulation().run_for(2h);
    ASSERT_TRUE(world_->retain());  // the log is cut: heads carry their entries
    world_.simulation().run_for(2h);
  }
  /// Forgets "done" before the next entry is read.
  void forget_before_reading() {
    before_reading_ = [this] { ASSERT_TRUE(world_->retain()); };
  }
  /// Changes "c" and cuts its older entry before the next entry is read.
  void go_on_before_reading() {
    before_reading_ = [this] {
      ASSERT_TRUE(world_->send<counter>("c", Add{4}));
      ASSERT_TRUE(world_->retain());
    };
  }

  Interrupted::Hook before_reading_;
  Interrupted::Hook after_forgetting_;
  World world_{
      counters,
      {.cache_bytes = 0, .keep = 1h, .forget_finished = 3h, .retain_every = 24h},
      {.opener = [this](Runtime& runtime, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
        PAWL_TRY(auto store, open_store(runtime, options));
        return std::make_unique<Interrupted>(std::move(store), before_reading_, after_forgetting_);
      }}};
};

TEST_F(ReadBesideRetention, AnInstanceForgottenMeanwhileIsUnknown) {
  forget_before_reading();
  EXPECT_EQ(code_of(world_->get<counter>("done")), Code::unknown_instance);
}

TEST_F(ReadBesideRetention, AnInstanceThatWentOnMeanwhileIsReadAgain) {
  go_on_before_reading();
  const auto read = world_->get<counter>("c");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->data.sum, 5);
}

TEST_F(ReadBesideRetention, AListLeavesOutAnInstanceForgottenMeanwhile) {
  forget_before_reading();
  const auto page = world_->list({.machine = "counter"});
  ASSERT_TRUE(page) << page.error().to_string();
  ASSERT_EQ(page->instances.size(), 1U);
  EXPECT_EQ(page->instances[0].key, "c");
}

TEST_F(ReadBesideRetention, AListReadsAnInstanceAgainThatWentOnMeanwhile) {
  go_on_before_reading();
  const auto page = world_->list({.machine = "counter"});
  ASSERT_TRUE(page) << page.error().to_string();
  ASSERT_FALSE(page->instances.empty());
  EXPECT_EQ(page->instances[0].version, 2);
  EXPECT_EQ(page->instances[0].data, R"({"sum":5})");
}

TEST_F(ReadBesideRetention, AListShowsAnInstanceCreatedAgainMeanwhileOnce) {
  ASSERT_TRUE(world_->create<counter>("last"));
  before_reading_ = [this] {
    ASSERT_TRUE(world_->retain());
    ASSERT_TRUE(world_->create<counter>("done"));
  };
  std::vector<std::string> keys;
  ListQuery query{.machine = "counter", .limit = 2};
  do {
    const auto page = world_->list(query);
    ASSERT_TRUE(page) << page.error().to_string();
    for (const auto& instance : page->instances) keys.push_back(instance.key);
    query.cursor = page->next;
  } while (!query.cursor.empty());
  EXPECT_THAT(keys, testing::ElementsAre("c", "last", "done"));
}

TEST_F(ReadBesideRetention, AReaderBetweenStoreAndMemoryFindsAForgottenInstanceUnknown) {
  std::thread reader;
  std::binary_semaphore reading(0);
  std::optional<Code> found;
  after_forgetting_ = [&] {
    before_reading_ = [&] { reading.release(); };
    reader = std::thread([&] { found = code_of(world_->get<counter>("done")); });
    // The reader has taken the head from memory; the store has forgotten the instance, memory has not.
    reading.acquire();
  };
  ASSERT_TRUE(world_->retain());
  reader.join();
  EXPECT_EQ(found, Code::unknown_instance);
}

TEST_F(ReadBesideRetention, AnEntryThatIsMissingForNoReasonIsDamage) {
  struct Loses final : StoreAround {
    using StoreAround::StoreAround;
    Result<std::optional<Entry>> head_entry(const InstanceId&, Seq) override { return std::nullopt; }
  };
  World world(
      counters, {.cache_bytes = 0},
      {.opener = [](Runtime& runtime, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
        PAWL_TRY(auto store, open_store(runtime, options));
        return std::make_unique<Loses>(std::move(store));
      }});
  ASSERT_TRUE(world->create<counter>("c"));
  EXPECT_EQ(code_of(world->get<counter>("c")), Code::store_corrupt);
  EXPECT_EQ(code_of(world->list({.machine = "counter"})), Code::store_corrupt);
}

constexpr Duration kTenYears = std::chrono::hours(24 * 3653);

bool is_truncated(World& world) { return world->history("counter", "c").value().truncated; }

/// A counter that was written half an hour ago; everything is kept for an hour.
class ClockSetAhead : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_->create<counter>("c"));
    ASSERT_TRUE(world_->create<counter>("done"));
    ASSERT_TRUE(world_->send<counter>("done", Close{}));
    world_.simulation().run_for(30min);
  }
  /// Writes the current time of the clock to the log.
  void write_and_retain() {
    ASSERT_TRUE(world_->send<counter>("c", Add{1}));
    ASSERT_TRUE(world_->retain());
  }

  World world_{counters, {.keep = 1h, .forget_finished = 1h, .retain_every = 24h}};
};

TEST_F(ClockSetAhead, DoesNotMakeHistoryOld) {
  world_.process().jump_clock(kTenYears);
  write_and_retain();
  EXPECT_FALSE(is_truncated(world_));
  EXPECT_TRUE(world_->get<counter>("done"));
}

TEST_F(ClockSetAhead, DoesNotMakeHistoryOldAfterARestart) {
  world_.process().jump_clock(kTenYears);
  write_and_retain();
  for (int i = 0; i < 3; ++i) {
    world_.restart();
    world_.process().jump_clock(kTenYears);
    write_and_retain();
    EXPECT_FALSE(is_truncated(world_));
    EXPECT_TRUE(world_->get<counter>("done"));
  }
}

TEST_F(ClockSetAhead, IsBelievedOnceHistoryIsOldByMeasuredTime) {
  world_.process().jump_clock(kTenYears);
  write_and_retain();
  world_.simulation().run_for(2h);
  write_and_retain();
  EXPECT_TRUE(is_truncated(world_));
  EXPECT_EQ(code_of(world_->get<counter>("done")), Code::unknown_instance);
}

TEST_F(ClockSetAhead, AndBackAgainLeavesTheMeasureRunning) {
  world_.process().jump_clock(kTenYears);
  ASSERT_TRUE(world_->retain());
  world_.process().jump_clock(-kTenYears);
  world_.simulation().run_for(40min);
  write_and_retain();
  EXPECT_TRUE(is_truncated(world_)) << "seventy minutes have been measured";
}

TEST(RetentionClock, OneOpeningCountsAtMostItsShare) {
  const Time then{std::chrono::hours(1000)};
  const RetentionClock::Reading last{then, then};
  RetentionClock clock({.per_opening = 30min, .settled = 1h});
  clock.open(last, {then + kTenYears, Instant{}, then});
  EXPECT_EQ(clock.advance({then + kTenYears, Instant{}, then}), then + 30min);
  RetentionClock again({.per_opening = 30min, .settled = 1h});
  again.open(clock.reading(), {then + kTenYears, Instant{}, then});
  EXPECT_EQ(again.advance({then + kTenYears, Instant{}, then}), then + 30min) << "the same jump counts once";
}

TEST(RetentionClock, ShortTimesBetweenProcessesCountInFull) {
  const Time then{std::chrono::hours(1000)};
  RetentionClock clock({.per_opening = 30min, .settled = 1h});
  clock.open(RetentionClock::Reading{then, then}, {then + 20min, Instant{}, then});
  EXPECT_EQ(clock.advance({then + 25min, Instant{} + 5min, then}), then + 25min);
}

TEST(RetentionClock, TimeThatWasCountedWronglyDoesNotMakeWhatIsWrittenLaterOld) {
  const Time then{std::chrono::hours(1000)};
  std::optional<RetentionClock::Reading> last{{then, then}};
  // A clock that is set ahead and back repeatedly: each opening counts its share.
  for (int i = 0; i < 10; ++i) {
    for (const auto wall : {then + kTenYears, then}) {
      RetentionClock clock({.per_opening = 30min, .settled = 1h});
      clock.open(last, {wall, Instant{}, then});
      EXPECT_LE(clock.advance({wall, Instant{}, then}), then + 30min);
      last = clock.reading();
    }
  }
  RetentionClock behind({.per_opening = 30min, .settled = 1h});
  behind.open(last, {then, Instant{}, then});
  EXPECT_EQ(behind.advance({then - 24h, Instant{} + 10h, then}), then)
      << "while the clock is behind the log, every entry has the time of the newest";
}

}  // namespace
}  // namespace pawl::test
