// SPDX-License-Identifier: Apache-2.0
// What a run waits for before its first step: its start time, its upstream run, its queue; and requests in
// these states.
#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FlowWaitingTest : public ::testing::Test {
 protected:
  Script script;
  FlowKit kit{[this](Flows& flows) {
                flows.add(script.letters());
                flows.add(flow<Order, Receipt>("bound")
                              .bind<Receipt>(
                                  [](Order& order, const Receipt& upstream) { order.item = upstream.note; })
                              .start("take",
                                     [this](Step& step, const Order& order, Receipt&) {
                                       script.log.push_back(step.id() + ":take " + order.item);
                                       return Outcome::done();
                                     })
                              .end());
              },
              {.engine = {.pools = {{"line", 1}, {"wide", 4}}}}};
  Flows& flows() { return kit.flows(); }
  pawl::Run start(RunOptions options, std::string_view flow = "letters") {
    auto run = flows().start(flow, "{}", std::move(options));
    EXPECT_TRUE(run) << run.error().to_string();
    return run ? *run : pawl::Run{};
  }
  RunState state(std::string_view id, std::string_view flow = "letters") {
    return flows().get(flow, id).value().state;
  }
  std::string status(std::string_view id) { return flows().get("letters", id).value().status; }
};

TEST_F(FlowWaitingTest, ADelayedRunBeginsWhenItsTimeHasComeAlsoAfterACrash) {
  start({.id = "x", .delay = 1h});
  kit.advance(59min);
  EXPECT_EQ(state("x"), RunState::delayed);
  kit.crash();
  kit.advance(30s);
  EXPECT_THAT(script.log, IsEmpty());
  kit.advance(31s);
  EXPECT_EQ(state("x"), RunState::done);
}

TEST_F(FlowWaitingTest, ADependentBeginsWhenTheOtherIsDoneAndTakesItsResponseOver) {
  script.steps["c"] = [](Step&, const Order&, Receipt& receipt) {
    receipt.note = "from upstream";
    return Outcome::done();
  };
  start({.id = "up", .delay = 1h});
  start({.id = "down", .after = RunRef{"letters", "up"}}, "bound");
  kit.advance(30min);
  EXPECT_EQ(state("down", "bound"), RunState::waiting);
  kit.advance(31min);
  EXPECT_EQ(state("down", "bound"), RunState::done);
  EXPECT_THAT(script.log, ElementsAre("up:a", "up:b", "up:c", "down:take from upstream"));
}

TEST_F(FlowWaitingTest, ADependentOfAFinishedRunBeginsAtOnce) {
  start({.id = "up"});
  kit.advance(1s);
  start({.id = "down", .after = RunRef{"letters", "up"}});
  kit.advance(1s);
  EXPECT_EQ(state("down"), RunState::done);
}

TEST_F(FlowWaitingTest, OnSuccessADependentOfARunThatWasHandedOffBegins) {
  script.steps["a"] = [](Step& step, const Order&, Receipt&) {
    return step.id() == "up" ? Outcome::handoff("there already") : Outcome::done();
  };
  start({.id = "up", .delay = 1h});
  start({.id = "on success", .after = RunRef{"letters", "up"}});
  start({.id = "on failure", .after = RunRef{"letters", "up"}, .on = RunAfter::failure});
  kit.advance(61min);
  EXPECT_EQ(state("up"), RunState::handed_off);
  EXPECT_EQ(state("on success"), RunState::done);
  EXPECT_EQ(state("on failure"), RunState::cancelled);
}

TEST_F(FlowWaitingTest, OnSuccessADependentOfAFailureIsCancelledAndSaysWhy) {
  script.steps["a"] = [](Step& step, const Order&, Receipt&) {
    return step.id() == "up" ? Outcome::abort("no") : Outcome::done();
  };
  start({.id = "up", .delay = 1h});
  start({.id = "on success", .after = RunRef{"letters", "up"}});
  start({.id = "always", .after = RunRef{"letters", "up"}, .on = RunAfter::always});
  start({.id = "on failure", .after = RunRef{"letters", "up"}, .on = RunAfter::failure});
  kit.advance(2h);
  EXPECT_EQ(state("on success"), RunState::cancelled);
  EXPECT_THAT(flows().get("letters", "on success").value().error,
              HasSubstr("letters \"up\" on success, which ended as aborted"));
  EXPECT_EQ(state("always"), RunState::done);
  EXPECT_EQ(state("on failure"), RunState::done);
}

TEST_F(FlowWaitingTest, OnFailureADependentOfASuccessIsCancelled) {
  start({.id = "up", .delay = 1h});
  start({.id = "down", .after = RunRef{"letters", "up"}, .on = RunAfter::failure});
  kit.advance(2h);
  EXPECT_EQ(state("down"), RunState::cancelled);
}

TEST_F(FlowWaitingTest, TheEndOfARunThatAnEarlierRunOfTheIdCameAfterBeginsNothing) {
  for (const bool paused : {false, true}) {
    SCOPED_TRACE(paused);
    script.steps["c"] = [](Step& step, const Order&, Receipt& receipt) {
      receipt.note = "from " + step.id();
      return Outcome::done();
    };
    start({.id = "earlier", .delay = 1h});
    start({.id = "later", .delay = 2h});
    start({.id = "down", .after = RunRef{"letters", "earlier"}}, "bound");
    kit.advance(1min);
    ASSERT_TRUE(flows().cancel("bound", "down", "it is to come after another"));
    kit.advance(1min);
    start({.id = "down", .after = RunRef{"letters", "later"}}, "bound");
    kit.advance(1min);
    if (paused) {
      ASSERT_TRUE(flows().pause("bound", "down"));
    }
    kit.advance(1h);
    EXPECT_EQ(state("earlier"), RunState::done);
    EXPECT_EQ(state("down", "bound"), paused ? RunState::paused : RunState::waiting);
    if (paused) {
      ASSERT_TRUE(flows().resume("bound", "down"));
    }
    kit.advance(2h);
    EXPECT_EQ(state("down", "bound"), RunState::done);
    EXPECT_EQ(script.log.back(), "down:take from later");
  }
}

TEST_F(FlowWaitingTest, ADependentThatWaitsAgainForTheSameRunBeginsWhenThatHasEnded) {
  start({.id = "up", .delay = 1h});
  start({.id = "down", .after = RunRef{"letters", "up"}});
  kit.advance(1min);
  ASSERT_TRUE(flows().cancel("letters", "down", "not yet"));
  kit.advance(1min);
  start({.id = "down", .after = RunRef{"letters", "up"}});
  kit.advance(1h);
  EXPECT_EQ(state("down"), RunState::done);
}

TEST_F(FlowWaitingTest, ADependentOfAFlowThatIsRenamedMeanwhileStillHearsOfItsEnd) {
  start({.id = "up", .delay = 1h});
  start({.id = "down", .after = RunRef{"letters", "up"}}, "bound");
  kit.advance(1min);
  kit.crash_and_change([this](Flows& flows) {
    flows.add(flow<Order, Receipt>("characters")
                  .formerly("letters")
                  .start("a", script.step("a"))
                  .to("b", script.step("b"))
                  .to("c", script.step("c"))
                  .end());
    flows.add(flow<Order, Receipt>("bound").start("take", script.step("take")).end());
  });
  kit.advance(2h);
  EXPECT_EQ(state("down", "bound"), RunState::done);
}

TEST_F(FlowWaitingTest, ARunCannotWaitForItself) {
  start({.id = "a", .delay = 1h});
  EXPECT_EQ(code_of(flows().start("letters", "{}", {.id = "a", .after = RunRef{"letters", "a"}})),
            Code::invalid_argument);
}

TEST_F(FlowWaitingTest, ACycleOverSeveralRunsIsRefusedAndNamed) {
  start({.id = "a"});
  kit.advance(1s);
  start({.id = "b", .delay = 1h});
  start({.id = "c", .after = RunRef{"letters", "b"}});
  // The finished run a is started again, after b: then a would wait for b and b for a.
  start({.id = "a", .after = RunRef{"letters", "c"}});
  const auto cycle = flows().start("letters", "{}", {.id = "b", .after = RunRef{"letters", "a"}});
  ASSERT_FALSE(cycle);
  EXPECT_EQ(cycle.error().code(), Code::invalid_argument);
  EXPECT_THAT(cycle.error().message(),
              HasSubstr(R"(letters "b" after letters "a" after letters "c" after letters "b")"));
}

TEST_F(FlowWaitingTest, TheOrderIsDelayThenDependencyThenQueue) {
  start({.id = "holder", .queue = "line"});
  script.steps["a"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.id() == "holder" && step.attempt() < 4) return busy();
    return Outcome::done();
  };
  start({.id = "up", .delay = 2h});
  start({.id = "x", .queue = "line", .delay = 1h, .after = RunRef{"letters", "up"}});
  EXPECT_EQ(state("x"), RunState::delayed);
  kit.advance(90min);
  EXPECT_EQ(state("x"), RunState::waiting);
  kit.advance(31min);
  EXPECT_EQ(state("x"), RunState::done);
}

TEST_F(FlowWaitingTest, AQueueLimitsRunsThroughAllTheirStepsAndRetries) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.id() == "one" && step.attempt() < 3) return busy();
    return Outcome::done();
  };
  start({.id = "one", .queue = "line"});
  start({.id = "two", .queue = "line"});
  EXPECT_EQ(status("two"), "queued");
  kit.advance(1h);
  EXPECT_THAT(script.log,
              ElementsAre("one:a", "one:b", "one:b", "one:b", "one:c", "two:a", "two:b", "two:c"));
}

TEST_F(FlowWaitingTest, AHigherPriorityGoesFirstAndEqualOnesInTheirOrder) {
  script.steps["a"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.id() == "first" && step.attempt() == 1) return busy();
    return Outcome::done();
  };
  for (const auto& [id, priority] :
       std::vector<std::pair<std::string, int>>{{"first", 0}, {"low", -1}, {"x", 0}, {"y", 0}, {"high", 5}}) {
    start({.id = id, .queue = "line", .priority = priority});
  }
  kit.advance(1h);
  std::vector<std::string> order;
  for (const auto& line : script.log) {
    if (line.ends_with(":c")) order.push_back(line.substr(0, line.size() - 2));
  }
  EXPECT_THAT(order, ElementsAre("first", "high", "x", "y", "low"));
}

TEST_F(FlowWaitingTest, AQueueIsResizedWhileItIsUsed) {
  script.steps["a"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.attempt() < 4) return busy();
    return Outcome::done();
  };
  for (const auto* id : {"one", "two", "three"}) start({.id = id, .queue = "line"});
  EXPECT_EQ(status("two"), "queued");
  ASSERT_TRUE(kit.engine().resize_pool("line", 2));
  kit.advance(10ms);
  EXPECT_EQ(status("two"), "retrying");
  EXPECT_EQ(status("three"), "queued");
}

TEST_F(FlowWaitingTest, AfterACrashQueuedRunsKeepTheirTurnAndTheLimitHolds) {
  script.steps["a"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.attempt() < 3) return busy();
    return Outcome::done();
  };
  for (const auto* id : {"one", "two", "three"}) start({.id = id, .queue = "line"});
  kit.advance(50ms);
  kit.crash();
  kit.advance(1ms);
  EXPECT_EQ(status("two"), "queued");
  EXPECT_EQ(status("three"), "queued");
  kit.advance(1h);
  std::vector<std::string> order;
  for (const auto& line : script.log) {
    if (line.ends_with(":c")) order.push_back(line);
  }
  EXPECT_THAT(order, ElementsAre("one:c", "two:c", "three:c"));
}

// Cancel, pause, resume and retry in each kind of waiting.

TEST_F(FlowWaitingTest, ADelayedAWaitingAndAQueuedRunCanBeCancelled) {
  start({.id = "delayed", .delay = 1h});
  start({.id = "waiting", .after = RunRef{"letters", "delayed"}, .on = RunAfter::always});
  start({.id = "holder", .queue = "line", .delay = 1ms});
  script.steps["a"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.id() == "holder") return busy();
    return Outcome::done();
  };
  kit.advance(2ms);
  start({.id = "queued", .queue = "line"});
  for (const auto* id : {"queued", "waiting", "delayed"}) {
    ASSERT_TRUE(flows().cancel("letters", id, "not needed")) << id;
  }
  kit.advance(1ms);
  for (const auto* id : {"queued", "waiting", "delayed"}) {
    EXPECT_EQ(state(id), RunState::cancelled) << id;
    EXPECT_EQ(flows().get("letters", id).value().error, "not needed");
  }
  kit.advance(3h);
  EXPECT_THAT(script.log, ElementsAre("holder:a", "holder:a", "holder:a", "holder:a"));
}

TEST_F(FlowWaitingTest, APausedRunWaitsUntilItIsResumed) {
  start({.id = "delayed", .delay = 1h});
  ASSERT_TRUE(flows().pause("letters", "delayed"));
  EXPECT_EQ(state("delayed"), RunState::paused);
  kit.advance(2h);
  EXPECT_EQ(state("delayed"), RunState::paused);
  ASSERT_TRUE(flows().resume("letters", "delayed"));
  kit.advance(1s);
  EXPECT_EQ(state("delayed"), RunState::done) << "its time had come meanwhile";
}

TEST_F(FlowWaitingTest, APausedRunLeavesItsPlaceInTheQueueToOthers) {
  script.steps["a"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.id() == "one" && step.attempt() == 1) return busy();
    return Outcome::done();
  };
  start({.id = "one", .queue = "line"});
  start({.id = "two", .queue = "line"});
  kit.advance(10ms);
  ASSERT_TRUE(flows().pause("letters", "one"));
  kit.advance(10ms);
  EXPECT_EQ(state("one"), RunState::paused);
  EXPECT_EQ(state("two"), RunState::done);
  ASSERT_TRUE(flows().resume("letters", "one"));
  kit.advance(1h);
  EXPECT_EQ(state("one"), RunState::done);
}

TEST_F(FlowWaitingTest, ADependentThatIsPausedNoticesTheEndOfTheOther) {
  start({.id = "up", .delay = 1h});
  start({.id = "down", .after = RunRef{"letters", "up"}});
  kit.advance(1s);
  ASSERT_TRUE(flows().pause("letters", "down"));
  kit.advance(2h);
  EXPECT_EQ(state("down"), RunState::paused);
  ASSERT_TRUE(flows().resume("letters", "down"));
  kit.advance(1s);
  EXPECT_EQ(state("down"), RunState::done);
}

TEST_F(FlowWaitingTest, ARunThatStillWaitsBeginsAtTheStepItIsToRetryFrom) {
  start({.id = "x", .delay = 1h});
  ASSERT_TRUE(flows().retry("letters", "x", "c"));
  kit.advance(2h);
  EXPECT_THAT(script.log, ElementsAre("x:c"));
}

}  // namespace
}  // namespace pawl::test
