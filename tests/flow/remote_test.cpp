// SPDX-License-Identifier: Apache-2.0
// Steps that external workers do.
#include <fmt/format.h>

#include "pawl/names.hpp"
#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FlowRemoteTest : public ::testing::Test {
 protected:
  Script script;
  FlowKit kit{[this](Flows& flows) {
    flows.add(flow<Order, Receipt>("remote")
                  .start("a", script.step("a"))
                  .remote("render", {.lease = 30s})
                  .to("c", script.step("c"))
                  .end());
  }};
  Flows& flows() { return kit.flows(); }
  pawl::Run run() { return flows().get("remote", "x").value(); }
  void start() { flows().start("remote", R"({"item":"lamp"})", {.id = "x"}).value(); }

  template <class T>
  Result<T> awaited(const std::function<void(std::move_only_function<void(Result<T>)>)>& begin) {
    auto outcome = std::make_shared<std::optional<Result<T>>>();
    begin([outcome](Result<T> got) { *outcome = std::move(got); });
    kit.simulation().run_until([&] { return outcome->has_value(); });
    return **outcome;
  }
  std::optional<ClaimedStep> claim(Duration wait = 1s) {
    return awaited<std::optional<ClaimedStep>>(
               [&](auto done) { flows().claim("remote", {}, wait, std::move(done)); })
        .value();
  }
  Result<LeaseStatus> heartbeat(const Lease& lease) {
    return awaited<LeaseStatus>([&](auto done) { flows().heartbeat(lease, 0.5, "half", std::move(done)); });
  }
  Result<void> complete(const Lease& lease, RemoteOutcome outcome) {
    return awaited<void>([&](auto done) { flows().complete(lease, std::move(outcome), std::move(done)); });
  }
};

TEST_F(FlowRemoteTest, AStepIsClaimedAndCompletedWithItsResponse) {
  start();
  kit.advance(1s);
  EXPECT_EQ(run().status, "offered");
  const auto claimed = claim();
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->step, "render");
  EXPECT_THAT(claimed->request, HasSubstr("lamp"));
  EXPECT_THAT(claimed->response, HasSubstr(R"(["a"])"));
  EXPECT_EQ(claimed->lease.attempt, 1u);
  ASSERT_TRUE(complete(claimed->lease, {Outcome::done(), R"({"did":["a","rendered"],"note":""})"}));
  const auto ended = flows().wait("remote", "x").value();
  EXPECT_EQ(ended.state, RunState::done);
  EXPECT_THAT(ended.response, HasSubstr(R"(["a","rendered","c"])"));
}

TEST_F(FlowRemoteTest, AClaimWaitsForAStepToCome) {
  auto claimed = std::make_shared<std::optional<ClaimedStep>>();
  flows().claim("remote", {"render"}, 1h, [claimed](auto got) { *claimed = got.value(); });
  kit.advance(1min);
  EXPECT_FALSE(*claimed);
  start();
  kit.advance(1s);
  EXPECT_TRUE(*claimed);
}

TEST_F(FlowRemoteTest, AStepThatIsClaimedIsOfferedToNobodyElse) {
  start();
  const auto first = claim();
  ASSERT_TRUE(first);
  EXPECT_FALSE(claim());
  EXPECT_TRUE(complete(first->lease, {}));
}

TEST_F(FlowRemoteTest, AClaimThatWaitedInVainSaysSo) { EXPECT_FALSE(claim(10s)); }

TEST_F(FlowRemoteTest, HeartbeatsKeepTheLeaseAndShowProgress) {
  start();
  const auto claimed = claim();
  for (int i = 0; i < 10; ++i) {
    kit.advance(20s);
    const auto status = heartbeat(claimed->lease);
    ASSERT_TRUE(status);
    EXPECT_FALSE(status->stop);
  }
  EXPECT_EQ(run().progress, 0.5);
  EXPECT_EQ(run().attempt, 1u);
}

TEST_F(FlowRemoteTest, WithoutAHeartbeatTheNextWorkerGetsItAndTheFirstIsRefused) {
  start();
  const auto first = claim();
  kit.advance(31s);
  const auto second = claim();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->lease.attempt, 2u);
  EXPECT_EQ(second->request_id, first->request_id);
  EXPECT_EQ(code_of(heartbeat(first->lease)), Code::lease_lost);
  EXPECT_EQ(code_of(complete(first->lease, {})), Code::lease_lost);
  EXPECT_TRUE(complete(second->lease, {}));
  EXPECT_EQ(flows().wait("remote", "x").value().state, RunState::done);
}

TEST_F(FlowRemoteTest, OnlyACompletionThatWasTakenIsCounted) {
  const auto done = [&] {
    for (const auto& count : flows().counts()) {
      if (count.step == "render" && count.outcome == "done") return count.count;
    }
    return std::uint64_t{99};
  };
  EXPECT_EQ(done(), 0u) << "counted from the beginning";
  start();
  const auto first = claim();
  kit.advance(31s);
  const auto second = claim();
  EXPECT_EQ(code_of(complete(first->lease, {})), Code::lease_lost);
  EXPECT_EQ(done(), 0u);
  ASSERT_TRUE(complete(second->lease, {}));
  EXPECT_TRUE(complete(second->lease, {})) << "a repeat";
  EXPECT_EQ(done(), 1u);
}

TEST_F(FlowRemoteTest, AfterACrashTheStepIsOfferedAgainWithItsAttemptCounted) {
  start();
  const auto first = claim();
  kit.crash();
  EXPECT_EQ(code_of(complete(first->lease, {})), Code::lease_lost);
  const auto second = claim();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->lease.attempt, 2u);
}

TEST_F(FlowRemoteTest, AWaitingStepUsesUpNoAttemptByACrash) {
  start();
  kit.advance(1s);
  kit.crash();
  EXPECT_EQ(claim()->lease.attempt, 1u);
}

TEST_F(FlowRemoteTest, AFailureIsTriedAgainAndAnAbortEnds) {
  start();
  ASSERT_TRUE(complete(claim()->lease, {busy()}));
  const auto again = claim();
  EXPECT_EQ(again->lease.attempt, 2u);
  ASSERT_TRUE(complete(again->lease, {Outcome::abort("no such font")}));
  EXPECT_EQ(flows().wait("remote", "x").value().error, "no such font");
}

TEST_F(FlowRemoteTest, AResponseThatDoesNotFitIsRefusedAndTheLeaseStays) {
  start();
  const auto claimed = claim();
  EXPECT_EQ(code_of(complete(claimed->lease, {Outcome::done(), R"({"did":7})"})), Code::wrong_type);
  EXPECT_TRUE(heartbeat(claimed->lease));
}

TEST_F(FlowRemoteTest, ACancelledStepIsToldAtItsHeartbeat) {
  start();
  const auto claimed = claim();
  ASSERT_TRUE(flows().cancel("remote", "x", "enough"));
  EXPECT_TRUE(heartbeat(claimed->lease).value().stop);
  ASSERT_TRUE(complete(claimed->lease, {busy("stopped")}));
  EXPECT_EQ(flows().wait("remote", "x").value().state, RunState::cancelled);
}

TEST_F(FlowRemoteTest, AnOfferedStepIsCancelledAtOnce) {
  start();
  kit.advance(1s);
  ASSERT_TRUE(flows().cancel("remote", "x", "enough"));
  kit.advance(1s);
  EXPECT_EQ(run().state, RunState::cancelled);
  EXPECT_FALSE(claim());
}

TEST_F(FlowRemoteTest, OnlyRemoteStepsCanBeClaimed) {
  const auto refused = awaited<std::optional<ClaimedStep>>(
      [&](auto done) { flows().claim("remote", {"a"}, 1s, std::move(done)); });
  EXPECT_EQ(code_of(refused), Code::unknown_name);
}

TEST_F(FlowRemoteTest, AWorkerThatReturnsCancelledUnaskedUsesUpTheAttemptsOfItsStep) {
  start();
  for (int attempts = 0; attempts < 4; ++attempts) {
    const auto claimed = claim();
    ASSERT_TRUE(claimed);
    ASSERT_TRUE(complete(claimed->lease, {Error(Code::cancelled, "the printer cancelled")}));
    kit.advance(1s);
  }
  EXPECT_EQ(run().state, RunState::failed);
  EXPECT_THAT(run().error, HasSubstr("the printer cancelled"));
}

TEST_F(FlowRemoteTest, ARepeatedCompletionGetsItsFirstOutcome) {
  const std::string response = R"({"did":["a","rendered"],"note":""})";
  for (const auto& outcome : {Outcome::done(), Outcome::rewind("a", "too dark"), Outcome::abort("no ink"),
                              Outcome::handoff("printed before"), Outcome::unrecoverable("no printer")}) {
    start();
    const auto claimed = claim();
    ASSERT_TRUE(complete(claimed->lease, {outcome, response}));
    const auto before = kit.engine().last_seq();
    const auto repeated = complete(claimed->lease, {outcome, response});
    EXPECT_TRUE(repeated) << repeated.error().to_string();
    kit.advance(1s);
    EXPECT_TRUE(complete(claimed->lease, {outcome, response}));
    kit.crash();
    EXPECT_TRUE(complete(claimed->lease, {outcome, response})) << "also of another process";
    EXPECT_GE(kit.engine().last_seq(), before);
    if (!run().finished) {
      ASSERT_TRUE(flows().cancel("remote", "x", "enough"));
      kit.advance(1s);
    }
  }
}

TEST_F(FlowRemoteTest, ARepeatedCompletionOfACancelledStepGetsItsFirstOutcome) {
  start();
  const auto claimed = claim();
  ASSERT_TRUE(flows().cancel("remote", "x", "enough"));
  ASSERT_TRUE(complete(claimed->lease, {}));
  EXPECT_TRUE(complete(claimed->lease, {}));
  EXPECT_EQ(flows().wait("remote", "x").value().state, RunState::cancelled);
  EXPECT_TRUE(complete(claimed->lease, {}));
}

TEST_F(FlowRemoteTest, ARepeatedFailureGetsItsFirstOutcome) {
  start();
  const auto first = claim();
  ASSERT_TRUE(complete(first->lease, {busy()}));
  EXPECT_TRUE(complete(first->lease, {busy()}));
  const auto second = claim();
  EXPECT_EQ(second->lease.attempt, 2u) << "a repeat uses up no attempt";
  EXPECT_TRUE(complete(first->lease, {busy()})) << "while the next attempt runs";
  EXPECT_EQ(code_of(complete(first->lease, {busy("no paper")})), Code::lease_lost) << "another failure";
  kit.crash();
  EXPECT_TRUE(complete(first->lease, {busy()})) << "of another process";
  const auto third = claim();
  EXPECT_EQ(third->lease.attempt, 3u);
  ASSERT_TRUE(complete(third->lease, {}));
  EXPECT_EQ(code_of(complete(first->lease, {busy()})), Code::lease_lost) << "the newest completion counts";
  EXPECT_EQ(flows().wait("remote", "x").value().state, RunState::done);
}

TEST_F(FlowRemoteTest, ARepeatOfTheLastFailureGetsItsFirstOutcome) {
  start();
  Lease last;
  for (int attempts = 0; attempts < 4; ++attempts) {
    last = claim()->lease;
    ASSERT_TRUE(complete(last, {busy()}));
    kit.advance(1s);
  }
  EXPECT_EQ(run().state, RunState::failed);
  EXPECT_THAT(run().error, HasSubstr("retries exhausted"));
  EXPECT_TRUE(complete(last, {busy()}));
  EXPECT_EQ(run().state, RunState::failed);
}

TEST_F(FlowRemoteTest, ARepeatedFailureOfACancelledStepGetsItsFirstOutcome) {
  start();
  const auto claimed = claim();
  ASSERT_TRUE(flows().cancel("remote", "x", "enough"));
  ASSERT_TRUE(complete(claimed->lease, {busy()}));
  EXPECT_TRUE(complete(claimed->lease, {busy()}));
  EXPECT_EQ(flows().wait("remote", "x").value().state, RunState::cancelled);
  EXPECT_TRUE(complete(claimed->lease, {busy()}));
}

TEST_F(FlowRemoteTest, AFailureIsInTheTimelineWithItsErrorAndTheWaitAfterIt) {
  start();
  ASSERT_TRUE(complete(claim()->lease, {busy("out of ink")}));
  ASSERT_TRUE(complete(claim()->lease, {}));
  flows().wait("remote", "x").value();
  std::vector<std::string> seen;
  for (const auto& span : flows().timeline("remote", "x")->spans) {
    if (span.step != "render" || span.kind == RunSpan::Kind::queue) continue;
    seen.push_back(fmt::format("{} {} {}", enum_name(span.kind), span.attempt, span.outcome));
    EXPECT_EQ(span.error.find("out of ink") != std::string::npos, span.outcome == "failed");
  }
  EXPECT_THAT(seen, ElementsAre("attempt 1 failed", "backoff 0 ", "attempt 2 done"));
}

TEST_F(FlowRemoteTest, ASecondCompletionWithAnotherResultIsRefused) {
  start();
  const auto claimed = claim();
  ASSERT_TRUE(complete(claimed->lease, {Outcome::done(), R"({"did":["a"],"note":"first"})"}));
  EXPECT_EQ(code_of(complete(claimed->lease, {Outcome::done(), R"({"did":["a"],"note":"second"})"})),
            Code::lease_lost);
  EXPECT_EQ(code_of(complete(claimed->lease, {Outcome::abort("no")})), Code::lease_lost);
  auto other = claimed->lease;
  other.attempt += 1;
  EXPECT_EQ(code_of(complete(other, {Outcome::done(), R"({"did":["a"],"note":"first"})"})), Code::lease_lost);
}

}  // namespace
}  // namespace pawl::test
