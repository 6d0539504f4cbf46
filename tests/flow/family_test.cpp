// SPDX-License-Identifier: Apache-2.0
// Parents and children; releases that change a flow; invalid flows.
#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FlowFamilyTest : public ::testing::Test {
 protected:
  Script script;
  FlowKit kit{[this](Flows& flows) {
                flows.add(script.letters("child"));
                flows.add(flow<Order, Receipt>("parent")
                              .start("fan-out",
                                     [this](Step& step, const Order&, Receipt&) -> Outcome {
                                       script.log.push_back("fan-out");
                                       for (const auto* id : {"one", "two"}) {
                                         PAWL_CHECK(step.start_child("child", Order{.item = id},
                                                                     {.id = id, .queue = child_queue}));
                                       }
                                       if (step.attempt() < fan_out_attempts) return busy();
                                       return Outcome::join();
                                     })
                              .to("fan-in",
                                  [this](Step& step, const Order&, Receipt& receipt) -> Outcome {
                                    if (rewinds > 0 && --rewinds == 0)
                                      return Outcome::rewind("fan-out", "once more");
                                    for (const auto* id : {"one", "two"}) {
                                      PAWL_TRY(const auto child, step.get("child", id));
                                      receipt.did.push_back(std::string(id) + " " +
                                                            std::string(enum_name(child.state)));
                                    }
                                    script.log.push_back("fan-in");
                                    return Outcome::done();
                                  })
                              .end());
              },
              {.engine = {.pools = {{"line", 1}}}}};
  std::string child_queue;
  std::uint32_t fan_out_attempts = 1;
  int rewinds = 0;
  Flows& flows() { return kit.flows(); }
};

TEST_F(FlowFamilyTest, TheNextStepWaitsForEveryChildAndSeesHowItEnded) {
  script.steps["c"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.id() == "two") return Outcome::abort("no");
    return step.attempt() < 3 ? busy() : Outcome::done();
  };
  flows().start("parent", "{}", {.id = "p"}).value();
  kit.advance(50ms);
  EXPECT_EQ(flows().get("parent", "p").value().state, RunState::joining);
  const auto ended = flows().wait("parent", "p").value();
  EXPECT_EQ(ended.state, RunState::done);
  EXPECT_THAT(ended.response, HasSubstr(R"(["one done","two aborted"])"));
  EXPECT_THAT(ended.family->children, SizeIs(2));
  EXPECT_EQ(flows().get("child", "one").value().family->parent, (RunRef{"parent", "p"}));
}

TEST_F(FlowFamilyTest, AChildThatFailsOrIsHandedOffHasEndedToo) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) {
    return step.id() == "one" ? Outcome::unrecoverable("broken") : Outcome::handoff("there already");
  };
  flows().start("parent", "{}", {.id = "p"}).value();
  kit.advance(1min);
  const auto ended = flows().get("parent", "p").value();
  EXPECT_EQ(ended.state, RunState::done);
  EXPECT_THAT(ended.response, HasSubstr(R"(["one failed","two handed_off"])"));
}

TEST_F(FlowFamilyTest, AParentThatJoinsLeavesItsPlaceInTheQueueToItsChildren) {
  child_queue = "line";
  flows().start("parent", "{}", {.id = "p", .queue = "line"}).value();
  kit.advance(1h);
  EXPECT_EQ(flows().get("parent", "p").value().state, RunState::done);
  EXPECT_THAT(script.log,
              ElementsAre("fan-out", "one:a", "one:b", "one:c", "two:a", "two:b", "two:c", "fan-in"));
}

TEST_F(FlowFamilyTest, AParentThatJoinsInAFullQueueGoesOnAfterACrash) {
  child_queue = "line";
  script.steps["b"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    return step.attempt() < 3 ? busy() : Outcome::done();
  };
  flows().start("parent", "{}", {.id = "p", .queue = "line"}).value();
  kit.advance(50ms);
  ASSERT_EQ(flows().get("parent", "p").value().state, RunState::joining);
  kit.crash();
  kit.advance(1h);
  EXPECT_EQ(flows().get("parent", "p").value().state, RunState::done);
}

TEST_F(FlowFamilyTest, AParentThatHasJoinedWaitsForItsTurnInTheQueueAgain) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.id() == "long") return step.attempt() < 4 ? busy() : Outcome::done();
    return step.attempt() < 2 ? busy() : Outcome::done();
  };
  flows().start("parent", "{}", {.id = "p", .queue = "line"}).value();
  kit.advance(50ms);
  ASSERT_EQ(flows().get("parent", "p").value().state, RunState::joining);
  flows().start("child", "{}", {.id = "long", .queue = "line"}).value();
  kit.advance(200ms);
  EXPECT_EQ(flows().get("child", "two").value().state, RunState::done);
  EXPECT_EQ(flows().get("parent", "p").value().status, "queued");
  EXPECT_EQ(flows().wait("parent", "p").value().state, RunState::done);
  EXPECT_EQ(flows().get("child", "long").value().state, RunState::done);
}

TEST_F(FlowFamilyTest, AJoiningParentThatIsRetriedTakesItsTurnInTheQueue) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    return step.attempt() < 3 ? busy() : Outcome::done();
  };
  flows().start("parent", "{}", {.id = "p", .queue = "line"}).value();
  kit.advance(50ms);
  ASSERT_EQ(flows().get("parent", "p").value().state, RunState::joining);
  flows().start("child", "{}", {.id = "long", .queue = "line"}).value();
  ASSERT_TRUE(flows().retry("parent", "p", "fan-out"));
  kit.advance(50ms);
  EXPECT_EQ(flows().get("parent", "p").value().status, "queued");
  EXPECT_EQ(flows().wait("parent", "p").value().state, RunState::done);
}

TEST_F(FlowFamilyTest, AStepThatIsRepeatedFindsTheChildrenItStarted) {
  fan_out_attempts = 3;
  script.steps["a"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    return step.attempt() < 4 ? busy() : Outcome::done();
  };
  flows().start("parent", "{}", {.id = "p"}).value();
  EXPECT_EQ(flows().wait("parent", "p").value().state, RunState::done);
  EXPECT_EQ(std::ranges::count(script.log, "one:c"), 1);
  EXPECT_EQ(flows().get("child", "one").value().generation, 1);
}

TEST_F(FlowFamilyTest, AStepThatIsRepeatedDoesNotBeginChildrenAnewThatHaveEnded) {
  fan_out_attempts = 3;
  flows().start("parent", "{}", {.id = "p"}).value();
  const auto ended = flows().wait("parent", "p").value();
  EXPECT_THAT(ended.response, HasSubstr(R"(["one done","two done"])"));
  EXPECT_EQ(std::ranges::count(script.log, "fan-out"), 3);
  EXPECT_EQ(std::ranges::count(script.log, "one:a"), 1);
  EXPECT_EQ(flows().get("child", "one").value().generation, 1);
}

TEST_F(FlowFamilyTest, AStepThatIsGoneBackToStartsItsChildrenAnewAndTheyAreWaitedFor) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    return step.attempt() < 3 ? busy() : Outcome::done();
  };
  rewinds = 1;
  flows().start("parent", "{}", {.id = "p"}).value();
  const auto ended = flows().wait("parent", "p").value();
  EXPECT_EQ(ended.state, RunState::done);
  EXPECT_THAT(ended.response, HasSubstr(R"(["one done","two done"])")) << "not as they ran";
  EXPECT_EQ(flows().get("child", "one").value().generation, 2);
}

TEST_F(FlowFamilyTest, JoiningSurvivesACrash) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    return step.attempt() < 4 ? busy() : Outcome::done();
  };
  flows().start("parent", "{}", {.id = "p"}).value();
  kit.advance(50ms);
  kit.crash();
  EXPECT_EQ(flows().wait("parent", "p").value().state, RunState::done);
}

TEST_F(FlowFamilyTest, AChildNeedsAnId) {
  Result<pawl::Run> started;
  FlowKit own([&](Flows& flows) {
    flows.add(script.letters("child"));
    flows.add(flow<Order, Receipt>("parent")
                  .start("fan-out",
                         [&](Step& step, const Order& order, Receipt&) {
                           started = step.start_child("child", order, {});
                           return Outcome::done();
                         })
                  .end());
  });
  own.flows().start("parent", "{}", {.id = "p"}).value();
  own.flows().wait("parent", "p").value();
  EXPECT_EQ(code_of(started), Code::invalid_argument);
}

TEST_F(FlowFamilyTest, AParentThatIsNoRunIsOnlyAName) {
  flows().start("child", "{}", {.id = "x", .parent = RunRef{"parent", "nobody"}}).value();
  EXPECT_EQ(flows().wait("child", "x").value().state, RunState::done);
}

class FlowReleaseTest : public ::testing::Test {
 protected:
  Script script;
  FlowKit kit{script.adds()};

  /// x is at b, which waits for its next attempt.
  void reach_b() {
    script.steps["b"] = [](Step&, const Order&, Receipt&) { return busy(); };
    kit.flows().start("letters", "{}", {.id = "x"}).value();
    kit.advance(10ms);
    script.log.clear();
    script.steps.clear();
  }
};

TEST_F(FlowReleaseTest, RunsAtARenamedStepGoOnThere) {
  reach_b();
  kit.crash_and_change([&](Flows& flows) {
    flows.add(flow<Order, Receipt>("letters")
                  .start("a", script.step("a"))
                  .to("bee", script.step("bee"))
                  .to("c", script.step("c"))
                  .renamed("b", "bee")
                  .end());
  });
  ASSERT_THAT(kit.found(), SizeIs(1));
  EXPECT_TRUE(kit.found()[0].known);
  EXPECT_EQ(kit.flows().wait("letters", "x").value().state, RunState::done);
  EXPECT_THAT(script.log, ElementsAre("x:bee", "x:c"));
}

TEST_F(FlowReleaseTest, RunsAtARemovedStepGoOnAtTheOneThatWasDeclared) {
  reach_b();
  kit.crash_and_change([&](Flows& flows) {
    flows.add(flow<Order, Receipt>("letters")
                  .start("a", script.step("a"))
                  .to("c", script.step("c"))
                  .removed("b", "c")
                  .end());
  });
  EXPECT_EQ(kit.flows().wait("letters", "x").value().state, RunState::done);
  EXPECT_THAT(script.log, ElementsAre("x:c"));
}

TEST_F(FlowReleaseTest, RunsAtAnUnknownStepAreListedAndLeftAlone) {
  reach_b();
  const auto without_b = [&](Flows& flows) {
    flows.add(flow<Order, Receipt>("letters").start("a", script.step("a")).to("c", script.step("c")).end());
  };
  kit.crash_and_change(without_b);
  ASSERT_THAT(kit.found(), SizeIs(1));
  EXPECT_EQ(kit.found()[0].step, "b");
  EXPECT_EQ(kit.found()[0].runs, 1u);
  EXPECT_FALSE(kit.found()[0].known);
  kit.advance(1h);
  EXPECT_EQ(kit.flows().get("letters", "x").value().state, RunState::running);
  EXPECT_THAT(script.log, IsEmpty());
  kit.crash_and_change(script.adds());
  EXPECT_EQ(kit.flows().wait("letters", "x").value().state, RunState::done)
      << "a release that knows it goes on";
}

TEST_F(FlowReleaseTest, AStepThatWasAddedIsRunByRunsThatHaveNotPassedIt) {
  reach_b();
  kit.crash_and_change([&](Flows& flows) {
    flows.add(flow<Order, Receipt>("letters")
                  .start("a", script.step("a"))
                  .to("b", script.step("b"))
                  .to("new", script.step("new"))
                  .to("c", script.step("c"))
                  .end());
  });
  kit.flows().wait("letters", "x").value();
  EXPECT_THAT(script.log, ElementsAre("x:b", "x:new", "x:c"));
}

Result<void> refusal(const Flow<Order, Receipt>& flow) {
  ThreadRuntime runtime;
  return Flows(runtime).add(flow).validate();
}

TEST(FlowDefinitionTest, WhatCannotBeAFlowIsRefusedWithTheReason) {
  const auto step = [](Step&, const Order&, Receipt&) { return Outcome::done(); };
  const auto said = [](const Result<void>& refused) { return refused ? "" : refused.error().to_string(); };
  EXPECT_THAT(said(refusal(flow<Order, Receipt>("x").end())), HasSubstr("at least one step"));
  EXPECT_THAT(said(refusal(flow<Order, Receipt>("two words").start("a", step).end())),
              HasSubstr("cannot be the name of a flow"));
  EXPECT_THAT(said(refusal(flow<Order, Receipt>("x").start("a b", step).end())),
              HasSubstr("cannot be the name of a step"));
  EXPECT_THAT(said(refusal(flow<Order, Receipt>("x").start("a", step).to("a", step).end())),
              HasSubstr("two steps are called"));
  EXPECT_THAT(said(refusal(flow<Order, Receipt>("x").start("a", step).start("b", step).end())),
              HasSubstr("comes first and once"));
  EXPECT_THAT(
      said(refusal(flow<Order, Receipt>("x").start("a", step).finally("f", step).to("b", step).end())),
      HasSubstr("those come last"));
  EXPECT_THAT(said(refusal(flow<Order, Receipt>("x").start("a", step).renamed("b", "c").end())),
              HasSubstr("which is no step"));
  EXPECT_THAT(said(refusal(flow<Order, Receipt>("x").start("a", step, {.timeout = 0s}).end())),
              HasSubstr("not positive"));
  EXPECT_THAT(said(refusal(flow<Order, Receipt>("x").start("a", step, {.retry = {.factor = 0.5}}).end())),
              HasSubstr("factor"));
}

}  // namespace
}  // namespace pawl::test
