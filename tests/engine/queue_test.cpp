// SPDX-License-Identifier: Apache-2.0
// Instances in queues, creation with a first event, stopping work, watchers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pawl/engine.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {

// A job with two pieces of work, optionally in a queue.
enum class JobState { fresh, first, second, done, given_up };
struct Enter {
  std::string queue;
  int priority = 0;
};
struct Did {};
struct Halt {
  bool at_once = true;
};
struct Halted {
  std::string reason;
};
struct JobData {
  std::string why;
};
inline constexpr auto job =
    machine<JobState, JobData>("job")
        .initial(JobState::fresh)
        .on<Enter>(JobState::fresh, JobState::first,
                   [](JobData&, const Enter& enter, Effects& effects) {
                     if (!enter.queue.empty()) effects.enter_queue(enter.queue, enter.priority);
                     effects.work("do", Did{});
                   })
        .on<Did>(JobState::first, JobState::second,
                 [](JobData&, const Did&, Effects& effects) { effects.work("do", Did{}); })
        .on<Did>(JobState::second, JobState::done)
        .stay<Halt>(from(JobState::first, JobState::second),
                    [](JobData&, const Halt& halt, Effects& effects) {
                      halt.at_once ? effects.stop_work("do") : effects.withdraw_work("do");
                    })
        .on<Halted>(from(JobState::first, JobState::second), JobState::given_up,
                    [](JobData& data, const Halted& halted) { data.why = halted.reason; })
        .terminal(JobState::done, JobState::given_up)
        .generations();
static_assert(verified<job>);

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class QueueTest : public ::testing::Test {
 protected:
  Machines machines() {
    Machines made;
    made.add<job>();
    made.work<job, Did>(
        "do",
        [this](const WorkContext& context, const Did&) -> Result<Reply> {
          log.push_back(std::string(context.key));
          data = context.data;
          if (!hang) return reply(Did{});
          Gate asked;
          const std::stop_callback stopped(context.stop, [&] { asked.open(); });
          if (deaf) {
            Gate never;
            world->process().wait(never, 1h);
          } else {
            world->process().wait(asked);
          }
          return fail(Code::cancelled, "asked to");
        },
        options);
    return made;
  }
  void begin() {
    world.emplace([this] { return machines(); }, EngineOptions{.pools = {{"line", 1}}});
  }
  Engine& engine() { return world->engine(); }
  void start(const std::string& key, Enter enter) {
    const auto made = engine().commit(Transaction{}.begin<job>(key, {}, std::move(enter)));
    ASSERT_TRUE(made) << made.error().to_string();
  }
  JobState state(std::string_view key) { return engine().get<job>(key).value().state; }
  void advance(Duration time) { world->simulation().run_for(time); }

  WorkOptions options{.retry = {.retries = 3, .first = 1s, .factor = 1, .jitter = Jitter::none},
                      .failed = on_failure<Halted>()};
  bool hang = false;
  bool deaf = false;
  std::vector<std::string> log;
  std::string data;
  std::optional<World> world;
};

TEST_F(QueueTest, AnInstanceBeginsWithItsFirstEventInOneEntry) {
  begin();
  start("a", {});
  const auto history = engine().history("job", "a").value();
  EXPECT_EQ(history.events.back().kind, "created");
  EXPECT_EQ(history.events.back().event, "Enter");
  EXPECT_EQ(history.events.back().state, "first");
  EXPECT_EQ(history.events.back().version, 1);
}

TEST_F(QueueTest, ABeginWhoseEventIsRefusedMakesNothing) {
  begin();
  EXPECT_EQ(code_of(engine().commit(Transaction{}.begin<job>("a", {}, Halt{}))), Code::illegal_event);
  EXPECT_EQ(code_of(engine().read("job", "a")), Code::unknown_instance);
}

TEST_F(QueueTest, AHandlerSeesTheDataOfItsInstance) {
  begin();
  (void)engine().commit(Transaction{}.begin<job>("a", {.why = "seen"}, Enter{}));
  advance(1s);
  EXPECT_THAT(data, HasSubstr("seen"));
}

TEST_F(QueueTest, AnInstanceKeepsItsTurnThroughAllItsWork) {
  begin();
  for (const auto* key : {"a", "b", "c"}) start(key, {.queue = "line"});
  advance(1s);
  EXPECT_THAT(log, ElementsAre("a", "a", "b", "b", "c", "c"));
}

TEST_F(QueueTest, NobodyElseIsAdmittedWhileTheFirstInLineWorks) {
  begin();
  hang = true;
  for (const auto* key : {"a", "b", "c"}) start(key, {.queue = "line"});
  advance(1s);
  EXPECT_TRUE(engine().read("job", "a").value().queue->admitted);
  EXPECT_FALSE(engine().read("job", "b").value().queue->admitted);
  EXPECT_FALSE(engine().read("job", "c").value().queue->admitted);
}

TEST_F(QueueTest, AnUnknownQueueIsRefusedWithTheKnownOnes) {
  begin();
  const auto refused = engine().commit(Transaction{}.begin<job>("a", {}, Enter{.queue = "nowhere"}));
  EXPECT_EQ(code_of(refused), Code::unknown_pool);
  EXPECT_THAT(refused.error().message(), HasSubstr("known: line"));
}

TEST_F(QueueTest, TheLineIsTheSameAfterACrash) {
  begin();
  hang = true;
  for (const auto* key : {"a", "b", "c"}) start(key, {.queue = "line"});
  advance(1ms);
  world->kill();
  hang = false;
  log.clear();
  world->start();
  advance(1min);
  EXPECT_THAT(log, ElementsAre("a", "a", "b", "b", "c", "c"));
}

TEST_F(QueueTest, StoppedWorkEndsOnceItsHandlerHas) {
  begin();
  hang = true;
  start("a", {});
  advance(1s);
  ASSERT_TRUE(engine().send<job>("a", Halt{}));
  advance(1ms);
  EXPECT_EQ(state("a"), JobState::given_up);
  EXPECT_THAT(log, SizeIs(1)) << "no other attempt";
}

TEST_F(QueueTest, WithdrawnWorkMayRunToItsEnd) {
  begin();
  hang = true;
  start("a", {});
  advance(1s);
  ASSERT_TRUE(engine().send<job>("a", Halt{.at_once = false}));
  advance(1h);
  EXPECT_EQ(state("a"), JobState::first);
}

TEST_F(QueueTest, WorkThatWaitsForItsTurnIsStoppedAtOnce) {
  begin();
  hang = true;
  start("a", {.queue = "line"});
  start("b", {.queue = "line"});
  ASSERT_TRUE(engine().send<job>("b", Halt{.at_once = false}));
  advance(1ms);
  EXPECT_EQ(state("b"), JobState::given_up);
}

TEST_F(QueueTest, StoppingSurvivesACrash) {
  begin();
  hang = true;
  deaf = true;
  start("a", {});
  advance(1s);
  ASSERT_TRUE(engine().send<job>("a", Halt{}));
  world->restart();
  advance(1ms);
  EXPECT_EQ(state("a"), JobState::given_up);
  EXPECT_THAT(log, SizeIs(1));
}

TEST_F(QueueTest, AnAttemptThatIgnoresItsTimeFailsAndTheNextOneWaitsForItsEnd) {
  hang = true;
  deaf = true;
  options.timeout = 10s;
  begin();
  start("a", {});
  advance(1min);
  EXPECT_THAT(log, SizeIs(1));
  EXPECT_TRUE(engine().read("job", "a").value().work.front().not_before);
  hang = false;
  advance(1h);
  EXPECT_THAT(log, SizeIs(3)) << "the second attempt, and the second piece of work";
  EXPECT_EQ(state("a"), JobState::done);
}

TEST_F(QueueTest, WorkWithoutAHandlerIsReportedAndLeftAlone) {
  hang = true;
  bool knows = true;
  world.emplace([&] {
    if (knows) return machines();
    Machines without;
    without.add<job>();
    return without;
  });
  start("a", {});
  advance(1s);
  knows = false;
  world->restart();
  EXPECT_THAT(engine().report().unknown, ElementsAre("job: work \"do\""));
  advance(1h);
  EXPECT_EQ(state("a"), JobState::first);
  knows = true;
  hang = false;
  world->restart();
  advance(1min);
  EXPECT_EQ(state("a"), JobState::done);
}

TEST_F(QueueTest, AWatcherIsCalledWhenTheStateIsReached) {
  begin();
  hang = true;
  start("a", {});
  auto seen = std::make_shared<std::vector<std::string>>();
  const auto note = [seen](Result<Instance> instance) {
    seen->push_back(instance ? instance->state : std::string(name(instance.error().code())));
  };
  engine().wait_for("job", "a", {"first"}, std::nullopt, note);
  engine().wait_for("job", "a", {}, 10s, note);
  engine().wait_for("job", "a", {}, std::nullopt, note);
  engine().wait_for("job", "nobody", {}, std::nullopt, note);
  advance(11s);
  EXPECT_THAT(*seen, ElementsAre("first", "unknown_instance", "timed_out"));
  ASSERT_TRUE(engine().send<job>("a", Halt{}));
  advance(1s);
  EXPECT_EQ(seen->back(), "given_up");
}

TEST_F(QueueTest, OnlyFewAttemptsAreUsedUpByACrashWhereTheyCannotBeRepeated) {
  options.retry = kNever;
  hang = true;
  begin();
  for (int i = 0; i < 30; ++i) start("j" + std::to_string(i), {});
  advance(1s);
  world->kill();
  hang = false;
  world->start();
  advance(1min);
  const auto counts = engine().counts()["job"];
  EXPECT_EQ(counts.at("given_up"), 8u) << "as many as there are threads";
  EXPECT_EQ(counts.at("done"), 22u);
}

}  // namespace
}  // namespace pawl::test
