// SPDX-License-Identifier: Apache-2.0
// Cancelling, pausing and retrying what runs; undoing and finishing; time limits.
#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// charge (undo refund), pack (undo unpack), ship; at the end tidy and report.
class FlowControlTest : public ::testing::Test {
 protected:
  Script script;
  FlowKit kit{[this](Flows& flows) {
                flows.add(flow<Order, Receipt>("shop")
                              .start("charge", script.step("charge"))
                              .undo(script.step("refund"))
                              .to("pack", script.step("pack"), {.timeout = 10s})
                              .undo(script.step("unpack"))
                              .to("ship", script.step("ship"))
                              .finally("tidy", script.step("tidy"))
                              .finally("report", script.step("report"))
                              .end());
              },
              {.engine = {.pools = {{"line", 1}}}}};
  Flows& flows() { return kit.flows(); }
  pawl::Run start(RunOptions options = {.id = "x"}) {
    return flows().start("shop", "{}", std::move(options)).value();
  }
  pawl::Run run() { return flows().get("shop", "x").value(); }
  /// Waits for a while in virtual time, or until it is asked to stop.
  Outcome linger(Step& step, Duration time) {
    Gate gate;
    const std::stop_callback stopped(step.stop(), [&] { gate.open(); });
    if (kit.process().wait(gate, time)) return Error(Code::cancelled, "was asked to stop");
    return Outcome::done();
  }
};

TEST_F(FlowControlTest, FinalizersRunAfterSuccessAndTheResponseStays) {
  start();
  const auto ended = flows().wait("shop", "x").value();
  EXPECT_EQ(ended.state, RunState::done);
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack", "x:ship", "x:tidy", "x:report"));
  EXPECT_THAT(ended.response, HasSubstr(R"(["charge","pack","ship"])"));
}

TEST_F(FlowControlTest, WhatWasDoneIsUndoneInReverseAndThenFinished) {
  script.doings["pack"] = [](Step&, const Order&, Receipt&) { return Outcome::abort("broken"); };
  start();
  const auto ended = flows().wait("shop", "x").value();
  EXPECT_EQ(ended.state, RunState::aborted);
  EXPECT_EQ(ended.error, "broken");
  EXPECT_EQ(ended.step, "pack") << "where it ended, not what was undone last";
  EXPECT_EQ(flows().timeline("shop", "x").value().spans[1].outcome, "aborted");
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack", "x:unpack", "x:refund", "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, AHandoffUndoesNothingAndFinishes) {
  script.doings["charge"] = [](Step&, const Order&, Receipt&) { return Outcome::handoff("paid already"); };
  start();
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::handed_off);
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, WhatFailsWhileItIsUndoneIsNotedAndTheRestGoesOn) {
  script.doings["ship"] = [](Step&, const Order&, Receipt&) { return Outcome::abort("no carrier"); };
  script.doings["unpack"] = [](Step&, const Order&, Receipt&) { return busy("the box is glued"); };
  script.doings["tidy"] = [](Step&, const Order&, Receipt&) { return Outcome::abort("no broom"); };
  start();
  const auto ended = flows().wait("shop", "x").value();
  EXPECT_EQ(ended.state, RunState::aborted);
  EXPECT_EQ(ended.error, "no carrier");
  ASSERT_EQ(ended.cleanup_errors.size(), 2u);
  EXPECT_THAT(ended.cleanup_errors[0], HasSubstr("the box is glued"));
  EXPECT_THAT(ended.cleanup_errors[1], HasSubstr("no broom"));
  EXPECT_EQ(script.log.back(), "x:report");
}

TEST_F(FlowControlTest, CancellingAsksTheRunningStepToStopAndUndoesOnlyAfterItHas) {
  script.doings["pack"] = [&](Step& step, const Order&, Receipt&) {
    auto outcome = linger(step, 5s);
    script.log.push_back("pack has stopped");
    return outcome;
  };
  start();
  kit.advance(1s);
  EXPECT_EQ(flows().cancel("shop", "x", "changed my mind").value().status, "cancelling");
  const auto ended = flows().wait("shop", "x").value();
  EXPECT_EQ(ended.state, RunState::cancelled);
  EXPECT_EQ(ended.error, "changed my mind");
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack", "pack has stopped", "x:unpack", "x:refund",
                                      "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, CancellingSurvivesACrash) {
  script.doings["pack"] = [&](Step& step, const Order&, Receipt&) { return linger(step, 5s); };
  start();
  kit.advance(1s);
  ASSERT_TRUE(flows().cancel("shop", "x", "enough"));
  kit.crash();
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::cancelled);
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack", "x:unpack", "x:refund", "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, AFinishedRunCannotBeCancelled) {
  start();
  flows().wait("shop", "x").value();
  EXPECT_EQ(code_of(flows().cancel("shop", "x", "late")), Code::finished_instance);
}

TEST_F(FlowControlTest, PausingLetsTheRunningStepEndAndHoldsTheNext) {
  script.doings["charge"] = [&](Step& step, const Order&, Receipt&) { return linger(step, 5s); };
  start();
  kit.advance(1s);
  EXPECT_EQ(flows().pause("shop", "x").value().status, "pausing");
  kit.advance(1h);
  EXPECT_EQ(run().state, RunState::paused);
  EXPECT_THAT(script.log, ElementsAre("x:charge"));
  kit.crash();
  kit.advance(1h);
  EXPECT_EQ(run().state, RunState::paused);
  ASSERT_TRUE(flows().resume("shop", "x"));
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::done);
  EXPECT_EQ(script.log[1], "x:pack");
}

TEST_F(FlowControlTest, APauseHoldsTheStepThatARewindGoesBackTo) {
  script.doings["pack"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    if (script.log.size() > 2) return Outcome::done();
    (void)linger(step, 5s);
    return Outcome::rewind("charge", "wrong card");
  };
  start();
  kit.advance(1s);
  ASSERT_TRUE(flows().pause("shop", "x"));
  kit.advance(1h);
  EXPECT_EQ(run().state, RunState::paused);
  EXPECT_EQ(run().step, "charge");
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack"));
  ASSERT_TRUE(flows().resume("shop", "x"));
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::done);
  EXPECT_EQ(script.log[2], "x:charge");
}

TEST_F(FlowControlTest, ResumingARunWhoseStepStillRunsTakesThePauseBack) {
  for (const bool fails : {false, true}) {
    script.log.clear();
    script.doings["charge"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
      auto outcome = linger(step, 5s);
      if (fails && script.log.size() == 1) return busy();
      return outcome;
    };
    start();
    kit.advance(1s);
    ASSERT_TRUE(flows().pause("shop", "x"));
    ASSERT_TRUE(flows().resume("shop", "x"));
    EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::done);
  }
}

TEST_F(FlowControlTest, PausingARunThatWaitsForItsNextAttemptTakesEffectAtOnce) {
  script.doings["charge"] = [&](Step&, const Order&, Receipt&) -> Outcome {
    return script.log.size() == 1 ? busy() : Outcome::done();
  };
  start();
  kit.advance(10ms);
  ASSERT_TRUE(flows().pause("shop", "x"));
  kit.advance(1ms);
  EXPECT_EQ(run().state, RunState::paused);
  ASSERT_TRUE(flows().resume("shop", "x"));
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::done);
}

TEST_F(FlowControlTest, ARunningRunIsRetriedFromAStep) {
  script.doings["ship"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    return script.log.size() == 3 ? linger(step, 1h) : Outcome::done();
  };
  start();
  kit.advance(1s);
  ASSERT_TRUE(flows().retry("shop", "x", "charge"));
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::done);
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack", "x:ship", "x:charge", "x:pack", "x:ship",
                                      "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, ARetriedRunIsFoundByItsNewIdAlsoAfterACrash) {
  script.doings["ship"] = [&](Step&, const Order&, Receipt&) { return Outcome::abort("strike"); };
  start();
  ASSERT_TRUE(flows().wait("shop", "x"));
  kit.simulation().run_for(1h);
  script.doings.erase("ship");
  const auto again = flows().retry("shop", "x").value();
  EXPECT_EQ(flows().find(again.ulid).value().created_at, again.created_at);
  kit.crash();
  const auto found = flows().find(again.ulid);
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ(found->created_at, again.created_at);
}

TEST_F(FlowControlTest, ARetryThatAStepAnswersWithAnEndIsNotLost) {
  for (const auto& end :
       {Outcome::abort("was stopped"), Outcome::unrecoverable("broken"), Outcome::handoff("enough")}) {
    script.log.clear();
    script.doings["ship"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
      if (script.log.size() > 3) return Outcome::done();
      (void)linger(step, 1h);
      return end;
    };
    start();
    kit.advance(1s);
    ASSERT_TRUE(flows().retry("shop", "x", "pack"));
    EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::done);
    EXPECT_EQ(flows().timeline("shop", "x").value().spans[2].outcome, "stopped");
    EXPECT_THAT(script.log,
                ElementsAre("x:charge", "x:pack", "x:ship", "x:pack", "x:ship", "x:tidy", "x:report"));
  }
}

TEST_F(FlowControlTest, ARunWhoseStepAnswersItsCancelWithAnEndIsCancelledAndUndone) {
  for (const auto& end :
       {Outcome::abort("was stopped"), Outcome::unrecoverable("broken"), Outcome::handoff("enough")}) {
    script.log.clear();
    script.doings["pack"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
      (void)linger(step, 1h);
      return end;
    };
    start();
    kit.advance(1s);
    ASSERT_TRUE(flows().cancel("shop", "x", "changed my mind"));
    const auto ended = flows().wait("shop", "x").value();
    EXPECT_EQ(ended.state, RunState::cancelled);
    EXPECT_EQ(ended.error, "changed my mind");
    EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack", "x:unpack", "x:refund", "x:tidy", "x:report"));
  }
}

TEST_F(FlowControlTest, ARunWhoseStepIgnoresItsCancelAndIsDoneIsCancelledAndUndone) {
  script.doings["pack"] = [&](Step& step, const Order&, Receipt&) {
    (void)linger(step, 1h);
    return Outcome::done();
  };
  start();
  kit.advance(1s);
  ASSERT_TRUE(flows().cancel("shop", "x", "changed my mind"));
  const auto ended = flows().wait("shop", "x").value();
  EXPECT_EQ(ended.state, RunState::cancelled);
  EXPECT_EQ(ended.error, "changed my mind");
  EXPECT_THAT(ended.response, HasSubstr(R"(["charge","pack"])"));
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack", "x:unpack", "x:refund", "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, AStepThatSentTheRunBackIsUndoneWhenAnEarlierStepThenEndsIt) {
  script.doings["charge"] = [&](Step&, const Order&, Receipt&) {
    return script.log.size() == 1 ? Outcome::done() : Outcome::abort("no money");
  };
  script.doings["pack"] = [](Step&, const Order&, Receipt&) { return Outcome::rewind("charge", "too dear"); };
  start();
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::aborted);
  EXPECT_THAT(script.log,
              ElementsAre("x:charge", "x:pack", "x:charge", "x:unpack", "x:refund", "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, AStepThatARetryWentBackFromIsUndoneWhenAnEarlierStepThenEndsTheRun) {
  script.doings["charge"] = [&](Step&, const Order&, Receipt&) {
    return script.log.size() == 1 ? Outcome::done() : Outcome::abort("no money");
  };
  script.doings["pack"] = [&](Step& step, const Order&, Receipt&) { return linger(step, 5s); };
  start();
  kit.advance(1s);
  ASSERT_TRUE(flows().retry("shop", "x", "charge"));
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::aborted);
  EXPECT_THAT(script.log,
              ElementsAre("x:charge", "x:pack", "x:charge", "x:unpack", "x:refund", "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, AFailedRunIsRetriedFromTheStepThatFailedWithItsResponse) {
  script.doings["ship"] = [&](Step&, const Order&, Receipt&) { return Outcome::abort("strike"); };
  start();
  const auto failed = flows().wait("shop", "x").value();
  script.doings.erase("ship");
  script.log.clear();
  const auto again = flows().retry("shop", "x").value();
  EXPECT_EQ(again.generation, 2);
  EXPECT_NE(again.ulid, failed.ulid);
  const auto ended = flows().wait("shop", "x").value();
  EXPECT_EQ(ended.state, RunState::done);
  EXPECT_THAT(script.log, ElementsAre("x:ship", "x:tidy", "x:report"));
  EXPECT_THAT(ended.response, HasSubstr(R"(["charge","pack","ship"])"));
}

TEST_F(FlowControlTest, ARetryFromAStepThatDoesNotExistIsRefused) {
  start({.id = "x", .delay = 1h});
  EXPECT_EQ(code_of(flows().retry("shop", "x", "fly")), Code::unknown_name);
  EXPECT_EQ(code_of(flows().retry("shop", "x", "tidy")), Code::unknown_name);
}

TEST_F(FlowControlTest, AnAttemptThatTakesTooLongIsAskedToStopAndTriedAgain) {
  script.doings["pack"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    return step.attempt() == 1 ? linger(step, 1h) : Outcome::done();
  };
  start();
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::done);
  EXPECT_LT(kit.simulation().elapsed(), 11s);
}

TEST_F(FlowControlTest, AStepThatIgnoresItsTimeLimitFailsTheRunAndDisturbsNobody) {
  script.doings["pack"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.id() == "other") return Outcome::done();
    Gate never;
    (void)kit.process().wait(never, 24h);
    return Outcome::done();
  };
  start();
  start({.id = "other"});
  kit.advance(1min);
  EXPECT_EQ(flows().get("shop", "other").value().state, RunState::done);
  EXPECT_EQ(run().status, "retrying") << "the next attempt waits for the end of the one that hangs";
  const auto timeline = flows().timeline("shop", "x").value();
  EXPECT_THAT(timeline.spans[1].error, HasSubstr("took too long and does not stop"));
  ASSERT_TRUE(flows().cancel("shop", "x", "it hangs"));
  kit.advance(1s);
  EXPECT_EQ(run().state, RunState::cancelled);
}

TEST_F(FlowControlTest, AStepThatReturnsCancelledUnaskedFailsTheRunOnceItsRetriesAreUsedUp) {
  script.doings["pack"] = [](Step&, const Order&, Receipt&) -> Outcome {
    return Error(Code::cancelled, "the courier cancelled");
  };
  start();
  kit.advance(1min);
  EXPECT_EQ(run().state, RunState::failed);
  EXPECT_THAT(run().error, HasSubstr("the courier cancelled"));
  EXPECT_THAT(script.log, ElementsAre("x:charge", "x:pack", "x:pack", "x:pack", "x:pack", "x:unpack",
                                      "x:refund", "x:tidy", "x:report"));
}

TEST_F(FlowControlTest, AStepThatReturnsCancelledUnaskedWhileItIsPausedPausesTheRun) {
  script.doings["charge"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    if (script.log.size() > 1) return Outcome::done();
    (void)linger(step, 5s);
    return Error(Code::cancelled, "the bank cancelled");
  };
  start();
  kit.advance(1s);
  ASSERT_TRUE(flows().pause("shop", "x"));
  kit.advance(1h);
  EXPECT_EQ(run().state, RunState::paused);
  ASSERT_TRUE(flows().resume("shop", "x"));
  EXPECT_EQ(flows().wait("shop", "x").value().state, RunState::done);
}

TEST_F(FlowControlTest, AStepThatKillsTheProcessUsesUpItsAttempts) {
  script.doings["charge"] = [&](Step&, const Order&, Receipt&) -> Outcome {
    kit.process().crash();
    return Outcome::done();
  };
  const auto drive = [&](Flows& flows) -> Result<void> {
    PAWL_CHECK(flows.start("shop", "{}", {.id = "x"}));
    PAWL_CHECK(flows.wait("shop", "x"));
    return {};
  };
  // A start that finds the run finished begins the next one, so it is started once.
  bool started = false;
  ASSERT_TRUE(kit.survive([&](Flows& flows) -> Result<void> {
    if (!std::exchange(started, true)) return drive(flows);
    PAWL_CHECK(flows.wait("shop", "x"));
    return {};
  }));
  EXPECT_EQ(run().state, RunState::failed);
  EXPECT_THAT(run().error, HasSubstr("was cut off by a crash and was the last"));
  EXPECT_EQ(std::ranges::count(script.log, "x:charge"), 4);
}

}  // namespace
}  // namespace pawl::test
