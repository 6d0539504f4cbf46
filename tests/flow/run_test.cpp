// SPDX-License-Identifier: Apache-2.0
// Runs from their start to their end.
#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FlowRunTest : public ::testing::Test {
 protected:
  Script script;
  FlowKit kit{script.adds(), {.engine = {.pools = {{"line", 1}, {"wide", 4}}}}};
  Flows& flows() { return kit.flows(); }
  pawl::Run start(RunOptions options = {}) {
    auto run = flows().start("letters", R"({"item":"lamp"})", std::move(options));
    EXPECT_TRUE(run) << run.error().to_string();
    return run ? *run : pawl::Run{};
  }
  pawl::Run ended(std::string_view id) {
    auto run = flows().wait("letters", id, 24h);
    EXPECT_TRUE(run) << run.error().to_string();
    return run ? *run : pawl::Run{};
  }
};

TEST_F(FlowRunTest, StepsRunInOrderAndTheResponseIsHandedOn) {
  start({.id = "x"});
  const auto run = ended("x");
  EXPECT_EQ(run.state, RunState::done);
  EXPECT_THAT(script.log, ElementsAre("x:a", "x:b", "x:c"));
  EXPECT_EQ(run.response, R"({"did":["a","b","c"],"note":""})");
}

TEST_F(FlowRunTest, ARunWithoutAnIdGetsItsUlidAsId) {
  const auto run = start();
  EXPECT_EQ(run.id, run.ulid);
  EXPECT_TRUE(Ulid::parse(run.ulid));
  EXPECT_EQ(flows().find(run.ulid).value().id, run.id);
}

TEST_F(FlowRunTest, ASecondStartOfTheSameIdAttaches) {
  const auto first = start({.id = "x", .delay = 1h});
  const auto second = start({.id = "x"});
  EXPECT_FALSE(first.attached);
  EXPECT_TRUE(second.attached);
  EXPECT_EQ(first.ulid, second.ulid);
}

TEST_F(FlowRunTest, AFinishedIdCanBeStartedAgain) {
  const auto first = start({.id = "x"});
  ended("x");
  const auto second = start({.id = "x"});
  EXPECT_FALSE(second.attached);
  EXPECT_NE(first.ulid, second.ulid);
  EXPECT_EQ(second.generation, 2);
}

TEST_F(FlowRunTest, AnErrorIsTriedAgainAfterTheDelayOfThePolicy) {
  script.doings["b"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.attempt() < 3) return busy();
    return Outcome::done();
  };
  start({.id = "x"});
  const auto before = kit.simulation().elapsed();
  EXPECT_EQ(ended("x").state, RunState::done);
  EXPECT_EQ(kit.simulation().elapsed() - before, 300ms) << "100 ms, then 200 ms";
  EXPECT_THAT(script.log, ElementsAre("x:a", "x:b", "x:b", "x:b", "x:c"));
}

TEST_F(FlowRunTest, NRetriesAreNPlusOneExecutionsAndThenTheRunFails) {
  script.doings["b"] = [](Step&, const Order&, Receipt&) { return busy("the bank is closed"); };
  start({.id = "x"});
  const auto run = ended("x");
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_EQ(run.kind, FailureKind::system);
  EXPECT_THAT(run.error, HasSubstr("retries exhausted"));
  EXPECT_THAT(run.error, HasSubstr("the bank is closed"));
  EXPECT_EQ(run.step, "b");
  EXPECT_THAT(script.log, ElementsAre("x:a", "x:b", "x:b", "x:b", "x:b"));
}

TEST_F(FlowRunTest, AHandlerThatThrowsIsTriedAgain) {
  script.doings["a"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    if (step.attempt() == 1) throw std::runtime_error("oops");
    return Outcome::done();
  };
  start({.id = "x"});
  EXPECT_EQ(ended("x").state, RunState::done);
}

TEST_F(FlowRunTest, HandoffSkipsTheRestAndKeepsTheResponse) {
  script.doings["a"] = [](Step&, const Order&, Receipt& receipt) {
    receipt.note = "was there";
    return Outcome::handoff("exists already");
  };
  start({.id = "x"});
  const auto run = ended("x");
  EXPECT_EQ(run.state, RunState::handed_off);
  EXPECT_THAT(run.response, HasSubstr("was there"));
  EXPECT_THAT(script.log, ElementsAre("x:a"));
}

TEST_F(FlowRunTest, AbortEndsWithoutARetry) {
  script.doings["b"] = [](Step&, const Order&, Receipt&) { return Outcome::abort("too large"); };
  start({.id = "x"});
  const auto run = ended("x");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_EQ(run.error, "too large");
  EXPECT_THAT(script.log, ElementsAre("x:a", "x:b"));
}

TEST_F(FlowRunTest, UnrecoverableEndsAsFailedWithItsKind) {
  for (const auto kind : {FailureKind::system, FailureKind::user}) {
    script.doings["a"] = [kind](Step&, const Order&, Receipt&) {
      return Outcome::unrecoverable("bad", kind);
    };
    start({.id = "x"});
    const auto run = ended("x");
    EXPECT_EQ(run.state, RunState::failed);
    EXPECT_EQ(run.kind, kind);
  }
}

TEST_F(FlowRunTest, RewindGoesBackAndKeepsTheResponse) {
  int times = 0;
  script.doings["c"] = [&](Step&, const Order&, Receipt& receipt) {
    if (++times == 1) {
      receipt.note = "again";
      return Outcome::rewind("b", "the device is gone");
    }
    return Outcome::done();
  };
  start({.id = "x"});
  const auto run = ended("x");
  EXPECT_EQ(run.state, RunState::done);
  EXPECT_THAT(script.log, ElementsAre("x:a", "x:b", "x:c", "x:b", "x:c"));
  EXPECT_THAT(run.response, HasSubstr("again"));
}

TEST_F(FlowRunTest, RewindsAreBounded) {
  script.doings["b"] = [&](Step&, const Order&, Receipt&) { return Outcome::rewind("a", "corrupt"); };
  start({.id = "x"});
  const auto run = ended("x");
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.error, HasSubstr("3 times already: corrupt"));
}

TEST_F(FlowRunTest, ARewindToAStepThatIsNotBeforeFails) {
  script.doings["a"] = [&](Step&, const Order&, Receipt&) { return Outcome::rewind("c", "?"); };
  start({.id = "x"});
  EXPECT_THAT(ended("x").error, HasSubstr("no step before it"));
}

TEST_F(FlowRunTest, AResponseOverTheLimitFailsTheRunOnly) {
  script.doings["a"] = [&](Step& step, const Order&, Receipt& receipt) {
    if (step.id() == "big") receipt.note.assign(300'000, 'x');
    return Outcome::done();
  };
  start({.id = "big"});
  start({.id = "small"});
  const auto run = ended("big");
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_EQ(run.kind, FailureKind::user);
  EXPECT_THAT(run.error, HasSubstr("at most 262144 are kept"));
  EXPECT_EQ(ended("small").state, RunState::done);
}

TEST_F(FlowRunTest, ProgressIsShownForTheStepThatReportsIt) {
  script.doings["b"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    step.progress(0.25, "2 of 8");
    if (step.attempt() == 1) return busy();
    return Outcome::done();
  };
  start({.id = "x"});
  kit.advance(50ms);
  const auto run = flows().get("letters", "x").value();
  EXPECT_EQ(run.step, "b");
  EXPECT_EQ(run.status, "retrying");
  EXPECT_EQ(run.progress, 0.25);
  EXPECT_EQ(run.progress_text, "2 of 8");
  const auto listed = flows().list({.flow = "letters"}).value();
  EXPECT_EQ(listed.runs.front().progress, 0.25);
  EXPECT_EQ(ended("x").progress, std::nullopt);
}

TEST_F(FlowRunTest, WhatCannotBeStartedIsRefusedWithTheReason) {
  EXPECT_EQ(code_of(flows().start("nothing", "{}")), Code::unknown_name);
  EXPECT_EQ(code_of(flows().start("letters", "{")), Code::malformed_json);
  EXPECT_EQ(code_of(flows().start("letters", R"({"cents":"many"})")), Code::wrong_type);
  EXPECT_EQ(code_of(flows().start("letters", "{}", {.queue = "nowhere"})), Code::unknown_pool);
  EXPECT_EQ(code_of(flows().start("letters", "{}", {.from = "z"})), Code::unknown_name);
  EXPECT_EQ(code_of(flows().start("letters", "{}", {.delay = -1s})), Code::invalid_argument);
  EXPECT_EQ(code_of(flows().start("letters", "{}", {.after = RunRef{"letters", "nobody"}})),
            Code::unknown_instance);
  EXPECT_EQ(code_of(flows().start("letters", "{}", {.after = RunRef{"nothing", "x"}})), Code::unknown_name);
  EXPECT_THAT(script.log, IsEmpty());
}

TEST_F(FlowRunTest, ARequestThatIsNestedTooDeeplyToBeKeptIsRefused) {
  const auto nested = [](std::size_t depth) {
    return R"({"more":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(flows().start("letters", nested(32)).error().code(), Code::unencodable);
  EXPECT_TRUE(flows().start("letters", nested(31), {.id = "deep"}));
  EXPECT_EQ(ended("deep").state, RunState::done);
}

TEST_F(FlowRunTest, TheResponseAndTheErrorAreReadableAfterARestart) {
  script.doings["c"] = [](Step&, const Order&, Receipt&) { return Outcome::abort("no room"); };
  start({.id = "x"});
  ended("x");
  kit.crash();
  const auto run = flows().get("letters", "x").value();
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_EQ(run.error, "no room");
  EXPECT_THAT(run.response, HasSubstr(R"("did":["a","b"])"));
  EXPECT_EQ(flows().wait("letters", "x").value().state, RunState::aborted);
}

}  // namespace
}  // namespace pawl::test
