// SPDX-License-Identifier: Apache-2.0
// Defects that are common in libraries of durable pipelines, one test each; and the tables of errors and
// retries of image pipelines.
#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The three flows of an image pipeline, with the names of their steps.
class FlowDefectTest : public ::testing::Test {
 protected:
  Script script;
  FlowKit kit{[this](Flows& flows) {
                flows.add(script.letters("download"));
                flows.add(script.letters("unpack"));
                flows.add(script.letters("activate"));
              },
              {.engine = {.pools = {{"downloads", 1}, {"unpacking", 1}}}}};
  Flows& flows() { return kit.flows(); }
  void start(std::string_view flow, RunOptions options) {
    const auto run = flows().start(flow, "{}", std::move(options));
    ASSERT_TRUE(run) << run.error().to_string();
  }
  RunState state(std::string_view flow, std::string_view id) { return flows().get(flow, id).value().state; }
  /// Fails the first `attempts` attempts of a step of a run.
  void hold_up(const std::string& step, const std::string& id, std::uint32_t attempts) {
    script.steps[step] = [=](Step& present, const Order&, Receipt&) -> Outcome {
      return present.id() == id && present.attempt() <= attempts ? busy() : Outcome::done();
    };
  }
};

TEST_F(FlowDefectTest, Defect1_ARunThatIsResumedDoesWhatItHasNotDoneWhateverOthersHave) {
  hold_up("c", "far", 2);
  hold_up("a", "near", 2);
  start("download", {.id = "far"});
  start("download", {.id = "near"});
  kit.advance(50ms);
  script.log.clear();
  kit.crash();
  EXPECT_EQ(flows().wait("download", "near").value().state, RunState::done);
  EXPECT_EQ(flows().wait("download", "far").value().state, RunState::done);
  EXPECT_EQ(std::ranges::count(script.log, "near:b"), 1);
  EXPECT_EQ(std::ranges::count(script.log, "near:c"), 1);
  EXPECT_EQ(std::ranges::count(script.log, "far:a"), 0);
  EXPECT_EQ(std::ranges::count(script.log, "far:b"), 0);
}

TEST_F(FlowDefectTest, Defect2_AQueuedRunThatIsResumedEndsAndStaysEndedAndTheLimitHolds) {
  hold_up("b", "one", 2);
  start("download", {.id = "one", .queue = "downloads"});
  start("download", {.id = "two", .queue = "downloads"});
  kit.advance(50ms);
  kit.crash();
  kit.advance(1ms);
  EXPECT_EQ(flows().get("download", "two").value().status, "queued");
  EXPECT_EQ(flows().wait("download", "one").value().state, RunState::done);
  EXPECT_EQ(flows().wait("download", "two").value().state, RunState::done);
  script.log.clear();
  kit.crash();
  kit.advance(1h);
  EXPECT_THAT(kit.found(), IsEmpty()) << "nothing is resumed again";
  EXPECT_THAT(script.log, IsEmpty());
}

TEST_F(FlowDefectTest, Defect3_FlowsThatShareARequestTypeResumeOnlyTheirOwnRuns) {
  hold_up("a", "img", 1);
  start("download", {.id = "img"});
  start("unpack", {.id = "img"});
  kit.crash();
  flows().wait("download", "img").value();
  flows().wait("unpack", "img").value();
  EXPECT_EQ(std::ranges::count(script.log, "img:c"), 2) << "each once";
  EXPECT_EQ(flows().get("activate", "img").error().code(), Code::unknown_instance);
}

TEST_F(FlowDefectTest, Defect4_AChainOfOneIdRunsInItsOrder) {
  std::vector<std::string> order;
  script.steps["a"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.attempt() <= 2) return busy();
    order.push_back(step.flow() + " begins");
    return Outcome::done();
  };
  script.steps["c"] = [&](Step& step, const Order&, Receipt&) {
    order.push_back(step.flow() + " ends");
    return Outcome::done();
  };
  start("download", {.id = "img", .queue = "downloads"});
  start("unpack", {.id = "img", .queue = "unpacking", .after = RunRef{"download", "img"}});
  start("activate", {.id = "img", .after = RunRef{"unpack", "img"}});
  flows().wait("activate", "img").value();
  EXPECT_THAT(order, ElementsAre("download begins", "download ends", "unpack begins", "unpack ends",
                                 "activate begins", "activate ends"));
}

TEST_F(FlowDefectTest, Defect5_AFailedRunIsFoundAsFailedByWaitAfterARestart) {
  script.steps["b"] = [](Step&, const Order&, Receipt&) { return Outcome::unrecoverable("damaged"); };
  start("download", {.id = "img"});
  kit.advance(1s);
  kit.crash();
  const auto run = flows().wait("download", "img").value();
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_EQ(run.error, "damaged");
  EXPECT_EQ(flows().find(run.ulid).value().id, "img") << "also by its ULID";
}

TEST_F(FlowDefectTest, Defect6_AnAbortIsNotCountedAsDone) {
  script.steps["a"] = [](Step&, const Order&, Receipt&) { return Outcome::abort("no"); };
  start("download", {.id = "img"});
  kit.advance(1s);
  for (const auto& count : flows().counts()) {
    const bool ended = count.flow == "download" && count.step == "a" && count.outcome == "aborted";
    EXPECT_EQ(count.count, ended ? 1u : 0u) << count.flow << " " << count.step << " " << count.outcome;
  }
  EXPECT_EQ(kit.engine().counts()["download"]["done"], 0u);
  EXPECT_EQ(kit.engine().counts()["download"]["aborted"], 1u);
}

TEST_F(FlowDefectTest, Defect6_TheAttemptsOfAStepAreNotThoseOfTheNext) {
  std::vector<std::uint32_t> attempts;
  hold_up("a", "img", 2);
  script.steps["b"] = [&](Step& step, const Order&, Receipt&) {
    attempts.push_back(step.attempt());
    return Outcome::done();
  };
  start("download", {.id = "img"});
  kit.advance(120ms);
  kit.crash();
  flows().wait("download", "img").value();
  EXPECT_THAT(attempts, ElementsAre(1u));
}

TEST_F(FlowDefectTest, Defect7_WhatOneStartSaysDoesNotLeakIntoTheNext) {
  start("download", {.id = "one", .queue = "downloads", .parent = RunRef{"activate", "p"}});
  start("download", {.id = "two"});
  const auto run = flows().get("download", "two").value();
  EXPECT_FALSE(run.plan);
  EXPECT_FALSE(run.family);
}

TEST_F(FlowDefectTest, Defect8_StoppingWaitsForWhatRunsAndForNothingElse) {
  Gate gate;
  script.steps["a"] = [&](Step& step, const Order&, Receipt&) {
    Gate asked;
    const std::stop_callback stopped(step.stop(), [&] { asked.open(); });
    kit.process().wait(asked);
    script.log.push_back("has stopped");
    return busy();
  };
  start("download", {.id = "runs", .queue = "downloads"});
  start("download", {.id = "queued", .queue = "downloads"});
  start("download", {.id = "delayed", .delay = 10h});
  kit.advance(1s);
  const auto before = kit.simulation().elapsed();
  kit.restart();
  EXPECT_LT(kit.simulation().elapsed() - before, 1h);
  EXPECT_THAT(script.log, ElementsAre("runs:a", "has stopped"));
  script.steps.clear();
  for (const auto* id : {"runs", "queued", "delayed"})
    EXPECT_EQ(flows().wait("download", id).value().state, RunState::done) << id;
}

TEST_F(FlowDefectTest, Defect9_IdsAreComparedWholeWhateverTheyContain) {
  for (const auto* id : {"img_10", "img#1", "img#1#2"}) start("download", {.id = id, .delay = 1h});
  EXPECT_EQ(flows().get("download", "img_1").error().code(), Code::unknown_instance);
  EXPECT_EQ(flows().get("download", "img#1").value().id, "img#1");
  EXPECT_EQ(flows().get("download", "img#1#2").value().id, "img#1#2");
}

TEST_F(FlowDefectTest, Defect9_TheChildrenOfARunThatAreActiveAreNotThoseThatHaveEnded) {
  hold_up("a", "slow", 3);
  start("activate", {.id = "p", .delay = 1h});
  for (const auto* id : {"slow", "quick"}) start("download", {.id = id, .parent = RunRef{"activate", "p"}});
  kit.advance(50ms);
  const auto active = flows().list({.flow = "download", .finished = false}).value();
  ASSERT_THAT(active.runs, SizeIs(1));
  EXPECT_EQ(active.runs.front().id, "slow");
  EXPECT_EQ(active.runs.front().family->parent, (RunRef{"activate", "p"}));
  const auto children = flows().get("activate", "p").value().family->children;
  ASSERT_THAT(children, SizeIs(1)) << "it hears of a child that it did not start once that has ended";
  EXPECT_EQ(children.front().run.id, "quick");
  EXPECT_EQ(children.front().ended, RunState::done);
}

TEST_F(FlowDefectTest, Defect10_ForgettingOldRunsLeavesTheOthersAlone) {
  FlowKit forgetful(script.adds("download"), {.engine = {.keep = 1h, .forget_finished = 1h}});
  forgetful.flows().start("download", "{}", {.id = "old"}).value();
  forgetful.flows().wait("download", "old").value();
  forgetful.flows().start("download", "{}", {.id = "late", .delay = 24h}).value();
  forgetful.advance(3h);
  ASSERT_TRUE(forgetful.engine().retain());
  EXPECT_EQ(forgetful.flows().get("download", "old").error().code(), Code::unknown_instance);
  forgetful.crash();
  EXPECT_EQ(forgetful.flows().wait("download", "late").value().state, RunState::done);
}

TEST_F(FlowDefectTest, Defect11_TheResponseIsThereForAnybodyAndAfterARestart) {
  start("download", {.id = "img"});
  flows().wait("download", "img").value();
  kit.crash();
  const auto response = Flows::response(script.letters("download"), flows().get("download", "img").value());
  EXPECT_THAT(response.value().did, ElementsAre("a", "b", "c"));
}

// The table of errors.

TEST_F(FlowDefectTest, SeedErrors_AStandardErrorIsTriedAgain) {
  hold_up("a", "img", 1);
  start("download", {.id = "img"});
  EXPECT_EQ(flows().wait("download", "img").value().state, RunState::done);
}

TEST_F(FlowDefectTest, SeedErrors_AbortUnrecoverableAndHandoffStopAtOnceWithAnEndOfTheirOwn) {
  const std::map<RunState, Outcome> outcomes{{RunState::aborted, Outcome::abort("validation")},
                                             {RunState::failed, Outcome::unrecoverable("corruption")},
                                             {RunState::handed_off, Outcome::handoff("processed")}};
  for (const auto& [state, outcome] : outcomes) {
    script.log.clear();
    script.steps["a"] = [outcome = outcome](Step&, const Order&, Receipt&) { return outcome; };
    start("download", {.id = "img"});
    EXPECT_EQ(flows().wait("download", "img").value().state, state);
    EXPECT_THAT(script.log, ElementsAre("img:a")) << "no retry, nothing after it";
  }
}

// The table of retries.

struct RetryRow {
  std::string step;
  RetryPolicy policy;
  std::uint32_t retries;
  Duration least;  ///< all delays together
  Duration most;
};

RetryPolicy exponential(std::uint32_t retries, Jitter jitter = Jitter::none) {
  return {.retries = retries, .first = 100ms, .factor = 2, .cap = 5s, .jitter = jitter};
}
RetryPolicy fixed(std::uint32_t retries) {
  return {.retries = retries, .first = 1s, .factor = 1, .cap = 1s, .jitter = Jitter::none};
}

class SeedRetryTest : public ::testing::TestWithParam<RetryRow> {};

TEST_P(SeedRetryTest, IsTriedAsOftenAndAsLateAsTheTableSays) {
  const auto& row = GetParam();
  Script script;
  script.steps["a"] = [](Step&, const Order&, Receipt&) { return busy(); };
  FlowKit kit([&](Flows& flows) {
    flows.add(flow<Order, Receipt>("image").start("a", script.step("a"), {.retry = row.policy}).end());
  });
  kit.flows().start("image", "{}", {.id = "x"}).value();
  EXPECT_EQ(kit.flows().wait("image", "x").value().state, RunState::failed);
  EXPECT_THAT(script.log, SizeIs(row.retries + 1)) << "N retries are N + 1 executions";
  EXPECT_GE(kit.simulation().elapsed(), row.least);
  EXPECT_LE(kit.simulation().elapsed(), row.most);
}

INSTANTIATE_TEST_SUITE_P(
    Table, SeedRetryTest,
    ::testing::Values(RetryRow{"check_exists", exponential(3), 3, 700ms, 700ms},
                      RetryRow{"download", exponential(5, Jitter::equal), 5, 1550ms, 4650ms},
                      RetryRow{"validate", fixed(2), 2, 2s, 2s},
                      RetryRow{"store_metadata", exponential(5, Jitter::equal), 5, 1550ms, 4650ms},
                      RetryRow{"check_unpacked", exponential(3), 3, 700ms, 700ms},
                      RetryRow{"create_device", fixed(3), 3, 3s, 3s},
                      RetryRow{"extract_layers", fixed(2), 2, 2s, 2s},
                      RetryRow{"verify_layout", fixed(2), 2, 2s, 2s},
                      RetryRow{"update_db", exponential(5), 5, 3100ms, 3100ms},
                      RetryRow{"check_snapshot", exponential(3), 3, 700ms, 700ms},
                      RetryRow{"create_snapshot", fixed(3), 3, 3s, 3s},
                      RetryRow{"register", exponential(5, Jitter::equal), 5, 1550ms, 4650ms}),
    [](const auto& info) { return info.param.step; });

class SeedTimeoutTest : public ::testing::TestWithParam<Duration> {};

TEST_P(SeedTimeoutTest, AnAttemptIsAskedToStopWhenItsTimeIsOver) {
  Script script;
  FlowKit* world = nullptr;
  Duration stopped_after{};
  script.steps["a"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    Gate asked;
    const std::stop_callback stopped(step.stop(), [&] { asked.open(); });
    const auto before = world->simulation().elapsed();
    world->process().wait(asked);
    stopped_after = world->simulation().elapsed() - before;
    return Outcome::abort("out of time");
  };
  FlowKit kit([&](Flows& flows) {
    flows.add(flow<Order, Receipt>("image").start("a", script.step("a"), {.timeout = GetParam()}).end());
  });
  world = &kit;
  kit.flows().start("image", "{}", {.id = "x"}).value();
  EXPECT_EQ(kit.flows().wait("image", "x").value().state, RunState::aborted);
  EXPECT_EQ(stopped_after, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Table, SeedTimeoutTest, ::testing::Values(Duration(5min), Duration(30min)));

}  // namespace
}  // namespace pawl::test
