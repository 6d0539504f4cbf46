// SPDX-License-Identifier: Apache-2.0
// Timers, work, messages and application rows: the effects of a transition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/engine.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The external service that the work calls.
struct Bank {
  std::vector<std::string> requests;  // request ids, one per call
  std::vector<std::uint32_t> attempts;
  int failures = 0;   // calls that fail before one succeeds
  bool hang = false;  // wait for the stop token
  int deaf = 0;       // so many calls do not even look at it
};

class EffectsTest : public testing::Test {
 protected:
  Machines machines() {
    Machines made;
    made.add<counter>().add<order>();
    made.work<order, Charge>(
        "charge",
        [this](const WorkContext& context, const Charge& charge) -> Result<Reply> {
          bank.requests.push_back(context.request_id());
          bank.attempts.push_back(context.attempt);
          if (bank.deaf-- > 0) {
            world->process().wait(deaf_return);
            return fail(Code::cancelled, "too late");
          }
          if (bank.hang) {
            Gate never;
            while (!context.stop.stop_requested()) world->process().wait(never, 1s);
            return fail(Code::cancelled, "asked to stop");
          }
          if (bank.failures-- > 0) return fail(Code::timed_out, "the bank is busy");
          return reply(Charged{"r" + std::to_string(charge.cents)});
        },
        options);
    return made;
  }

  void begin(EngineOptions engine_options = {}) {
    engine_options.schema = {{.text = "CREATE TABLE IF NOT EXISTS paid(receipt TEXT PRIMARY KEY)"}};
    world.emplace([this] { return machines(); }, std::move(engine_options));
  }

  World& run() { return *world; }

  /// Places the orders o0, o1, … and starts as much of their work as the permits allow.
  void place_orders(int count) {
    for (int i = 0; i < count; ++i) {
      const auto key = "o" + std::to_string(i);
      ASSERT_TRUE(run()->create<order>(key, {.cents = i}));
      ASSERT_TRUE(run()->send<order>(key, Place{}));
    }
    run().simulation().run_for(1s);
  }
  std::vector<std::vector<SqlValue>> receipts() {
    return (*world)->query({.text = "SELECT receipt FROM paid ORDER BY receipt"}).value();
  }
  Order state(std::string_view key) { return (*world)->get<order>(key).value().state; }

  Bank bank;
  Gate deaf_return;
  WorkOptions options{.retry = {.retries = 2, .first = 10s, .jitter = Jitter::none},
                      .failed = on_failure<ChargeFailed>()};
  std::optional<World> world;
};

TEST_F(EffectsTest, ARepeatedRequestGetsTheWholeInstanceAsItWas) {
  begin();
  bank.hang = true;
  ASSERT_TRUE(run()->create<order>("o", {.cents = 7}, {.partition = "p"}));
  const auto place = [&] {
    return run()->commit(Transaction{}.send<order>("o", Place{}).request_id("r1")).value().front();
  };
  const auto first = place();
  const auto repeat = place();
  EXPECT_EQ(repeat.key, "o");
  EXPECT_EQ(repeat.partition, "p");
  EXPECT_EQ(repeat.created_at, first.created_at);
  EXPECT_EQ(repeat.data, first.data);
  ASSERT_EQ(first.work.size(), 1U);
  ASSERT_EQ(repeat.work.size(), 1U);
  EXPECT_EQ(repeat.work.front().name, first.work.front().name);
}

TEST_F(EffectsTest, WorkIsRunAndItsReplyIsTheNextTransition) {
  begin();
  ASSERT_TRUE(run()->create<order>("o", {.cents = 42}));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  EXPECT_EQ(run()->wait<order>("o", 1min, Order::paid).value().data.receipt, "r42");
  EXPECT_TRUE(run()->read("order", "o").value().work.empty());
  EXPECT_THAT(bank.requests, ElementsAre(HasSubstr("order/o#")));
}

TEST_F(EffectsTest, ApplicationRowsAreWrittenInTheSameCommit) {
  begin();
  ASSERT_TRUE(run()->create<order>("o", {.cents = 42}));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  ASSERT_TRUE(run()->wait<order>("o", 1min, Order::paid));
  EXPECT_THAT(receipts(), ElementsAre(ElementsAre(SqlValue("r42"))));
}

TEST_F(EffectsTest, AUniqueConstraintOfTheApplicationRefusesTheWholeTransition) {
  begin();
  ASSERT_TRUE(run()->create<order>("a", {.cents = 42}));
  ASSERT_TRUE(run()->create<order>("b", {.cents = 42}));
  ASSERT_TRUE(run()->send<order>("a", Place{}));
  ASSERT_TRUE(run()->wait<order>("a", 1min, Order::paid));
  bank.failures = 100;  // keep the work of b from finishing by itself
  ASSERT_TRUE(run()->send<order>("b", Place{}));
  const auto refused = run()->send<order>("b", Charged{"r42"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::sql_failed);
  EXPECT_EQ(state("b"), Order::placed);
  EXPECT_EQ(receipts().size(), 1U);
}

TEST_F(EffectsTest, AReplyThatTheApplicationsRowsRefuseIsRecordedAndTheWorkConsumed) {
  begin();
  for (const char* key : {"a", "b"}) {
    ASSERT_TRUE(run()->create<order>(key, {.cents = 42}));
    ASSERT_TRUE(run()->send<order>(key, Place{}));
    run().simulation().run_for(1s);
  }
  EXPECT_EQ(state("b"), Order::placed);
  EXPECT_TRUE(run()->read("order", "b").value().work.empty());
  const auto newest = run()->history("order", "b").value().events.front();
  EXPECT_EQ(newest.kind, "work");
  EXPECT_THAT(newest.payload, HasSubstr("sql_failed"));
  EXPECT_EQ(bank.attempts.size(), 2U);
}

TEST_F(EffectsTest, FailedWorkIsTriedAgainAsItsPolicySays) {
  begin();
  bank.failures = 2;
  ASSERT_TRUE(run()->create<order>("o", {.cents = 1}));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  ASSERT_TRUE(run()->wait<order>("o", 10min, Order::paid));
  EXPECT_THAT(bank.attempts, ElementsAre(1U, 2U, 3U));
  EXPECT_GE(run().simulation().elapsed(), 30s) << "10 s after the first failure, 20 s after the second";
}

TEST_F(EffectsTest, TheLastFailureIsSentToTheInstance) {
  begin();
  bank.failures = 99;
  ASSERT_TRUE(run()->create<order>("o"));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  const auto failed = run()->wait<order>("o", 10min, Order::failed).value();
  EXPECT_THAT(failed.data.why, HasSubstr("the bank is busy"));
  EXPECT_EQ(bank.attempts.size(), 3U);
}

TEST_F(EffectsTest, AnAttemptCutOffByACrashCounts) {
  begin();
  bank.hang = true;
  ASSERT_TRUE(run()->create<order>("o"));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  for (int crash = 0; crash < 2; ++crash) {
    run().simulation().run_for(1s);
    run().restart();
    EXPECT_EQ(run()->report().interrupted, 1U);
  }
  run().simulation().run_for(1s);
  EXPECT_THAT(bank.attempts, ElementsAre(1U, 2U, 3U));
  run().restart();
  EXPECT_EQ(run()->wait<order>("o", 1min, Order::failed).value().state, Order::failed)
      << "a step that kills the process uses up its retries instead of looping";
  EXPECT_EQ(bank.attempts.size(), 3U);
  EXPECT_THAT(bank.requests[0], bank.requests[2]) << "every attempt has the same request id";
}

TEST_F(EffectsTest, WorkThatTakesTooLongIsAskedToStopAndFails) {
  options.timeout = 5s;
  options.retry = kNever;
  begin();
  bank.hang = true;
  ASSERT_TRUE(run()->create<order>("o"));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  EXPECT_THAT(run()->wait<order>("o", 2h, Order::failed).value().data.why, HasSubstr("took too long"));
}

TEST_F(EffectsTest, WorkThatDoesNotStopIsGivenUpAndItsThreadReplaced) {
  options.timeout = 5s;
  options.retry = kNever;
  begin({.work_threads = 2});
  bank.deaf = 2;
  place_orders(3);
  EXPECT_EQ(state("o2"), Order::placed);
  run().simulation().run_for(10s);
  EXPECT_EQ(state("o0"), Order::failed);
  EXPECT_EQ(state("o1"), Order::failed);
  EXPECT_EQ(state("o2"), Order::paid);
  deaf_return.open();
  run().simulation().run_for(1s);
  EXPECT_EQ(state("o0"), Order::failed) << "what it returns is dropped";
}

TEST_F(EffectsTest, AsManyThreadsAreReplacedAsThereAreAndNoMore) {
  options.timeout = 5s;
  options.retry = kNever;
  begin({.work_threads = 1});
  bank.deaf = 2;
  place_orders(3);
  run().simulation().run_for(20min);
  EXPECT_EQ(state("o1"), Order::failed);
  EXPECT_EQ(state("o2"), Order::placed);
  deaf_return.open();
  run().simulation().run_for(1s);
  EXPECT_EQ(state("o2"), Order::paid);
}

TEST_F(EffectsTest, WorkThatDoesNotStopKeepsThePermitOfItsPool) {
  options = {.retry = kNever, .timeout = 5s, .pool = "till", .failed = on_failure<ChargeFailed>()};
  begin({.work_threads = 4, .pools = {{"till", 1}}});
  bank.deaf = 1;
  place_orders(2);
  run().simulation().run_for(10s);
  EXPECT_EQ(state("o0"), Order::failed);
  EXPECT_EQ(state("o1"), Order::placed);
  deaf_return.open();
  run().simulation().run_for(1s);
  EXPECT_EQ(state("o1"), Order::paid);
}

TEST_F(EffectsTest, WorkThatDoesNotStopFreesThePermitOfItsPoolWhereItIsToldTo) {
  options = {.retry = kNever,
             .timeout = 5s,
             .pool = "till",
             .overdue_frees_permit = true,
             .failed = on_failure<ChargeFailed>()};
  begin({.work_threads = 4, .pools = {{"till", 1}}});
  bank.deaf = 1;
  place_orders(2);
  run().simulation().run_for(10s);
  EXPECT_EQ(state("o0"), Order::failed);
  EXPECT_EQ(state("o1"), Order::paid);
  deaf_return.open();
}

TEST_F(EffectsTest, ATimerFiresOnceItsTimeHasCome) {
  begin();
  bank.failures = 99;
  options.retry = {.retries = RetryPolicy::kUnlimited, .first = 1h, .cap = 1h};
  ASSERT_TRUE(run()->create<order>("o"));
  bank.hang = true;
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  run().simulation().run_for(29min);
  EXPECT_EQ(state("o"), Order::placed);
  run().simulation().run_for(2min);
  EXPECT_EQ(state("o"), Order::expired);
}

TEST_F(EffectsTest, ADeadlineSurvivesACrashAndAnOverdueOneFiresAtOpening) {
  begin();
  bank.hang = true;
  ASSERT_TRUE(run()->create<order>("o"));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  run().kill();
  run().simulation().run_for(31min);
  run().start();
  EXPECT_EQ(run()->wait<order>("o", 1s, Order::expired).value().state, Order::expired);
}

TEST_F(EffectsTest, AClockSetBackDoesNotMakeATimerWaitLonger) {
  begin();
  bank.hang = true;
  ASSERT_TRUE(run()->create<order>("o"));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  // The next process computes the wait again when it opens the store.
  run().restart();
  run().process().jump_clock(-24h);
  run().simulation().run_for(31min);
  EXPECT_EQ(state("o"), Order::expired);
  const auto history = run()->history("order", "o").value().events;
  for (std::size_t i = 1; i < history.size(); ++i)
    EXPECT_LE(history[i].at, history[i - 1].at) << "log time never goes back";
}

TEST_F(EffectsTest, AMessageReachesAnotherPartitionExactlyOnce) {
  begin();
  ASSERT_TRUE(run()->create<counter>("takings"));
  ASSERT_TRUE(run()->create<order>("o", {.cents = 42, .tell = "takings"}));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  ASSERT_TRUE(run()->wait<order>("o", 1min, Order::paid));
  run().simulation().run_for(1s);
  EXPECT_EQ(run()->get<counter>("takings").value().data.sum, 42);
  run().restart();
  run().simulation().run_for(1s);
  EXPECT_EQ(run()->get<counter>("takings").value().data.sum, 42);
}

TEST_F(EffectsTest, ARefusedMessageIsRecordedWithTheSender) {
  begin();
  ASSERT_TRUE(run()->create<order>("o", {.cents = 42, .tell = "nobody"}));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  ASSERT_TRUE(run()->wait<order>("o", 1min, Order::paid));
  run().simulation().run_for(1s);
  const auto newest = run()->history("order", "o").value().events.front();
  EXPECT_EQ(newest.kind, "message");
  EXPECT_THAT(newest.payload, HasSubstr("unknown_instance"));
}

TEST_F(EffectsTest, APoolLimitsWhatRunsAtTheSameTimeAndCanGrow) {
  options.pool = "bank";
  begin({.pools = {{"bank", 2}}});
  bank.hang = true;
  place_orders(5);
  EXPECT_EQ(bank.requests.size(), 2U);
  ASSERT_TRUE(run()->resize_pool("bank", 3));
  run().simulation().run_for(1s);
  EXPECT_EQ(bank.requests.size(), 3U);
  EXPECT_EQ(run()->resize_pool("nobody", 3).error().code(), Code::unknown_pool);
}

TEST_F(EffectsTest, TheLineOfAPoolSurvivesACrashInItsOrder) {
  options.pool = "bank";
  begin({.pools = {{"bank", 1}}});
  bank.hang = true;
  place_orders(4);
  EXPECT_EQ(bank.requests.size(), 1U);
  bank = {};
  run().restart();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(run()->wait<order>("o" + std::to_string(i), 5min, Order::paid));
  EXPECT_THAT(bank.requests, ElementsAre(HasSubstr("order/o0#"), HasSubstr("order/o1#"),
                                         HasSubstr("order/o2#"), HasSubstr("order/o3#")));
  EXPECT_THAT(bank.attempts, ElementsAre(2U, 1U, 1U, 1U))
      << "work that only stood in line has used up no attempt";
}

TEST_F(EffectsTest, FinishingDropsTimersAndWork) {
  begin();
  bank.hang = true;
  ASSERT_TRUE(run()->create<order>("o"));
  ASSERT_TRUE(run()->send<order>("o", Place{}));
  run().simulation().run_for(1s);
  ASSERT_TRUE(run()->send<order>("o", Expire{}));
  const auto finished = run()->read("order", "o").value();
  EXPECT_TRUE(finished.timers.empty());
  EXPECT_TRUE(finished.work.empty());
}

}  // namespace
}  // namespace pawl::test
