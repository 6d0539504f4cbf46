// SPDX-License-Identifier: Apache-2.0
// The test kit for flows, and the timeline of a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A bank that recognizes request ids, and one that does not.
struct Bank {
  std::set<std::string> ids;
  int careful = 0;
  int careless = 0;
  void charge(const std::string& id) {
    careful += ids.insert(id).second ? 1 : 0;
    ++careless;
  }
};

CrashTest crash_test(Bank& bank, std::function<std::string()> observe) {
  return {.setup =
              [&bank](Flows& flows) {
                flows.add(flow<Order, Receipt>("shop")
                              .start("charge",
                                     [&bank](Step& step, const Order&, Receipt&) {
                                       bank.charge(step.request_id());
                                       return Outcome::done();
                                     },
                                     {.retry = {.retries = 10}})
                              .to("pack", [](Step&, const Order&, Receipt&) { return Outcome::done(); },
                                  {.retry = {.retries = 10}})
                              .end());
              },
          .drive = [](Flows& flows) -> Result<void> {
            if (!flows.get("shop", "x")) PAWL_CHECK(flows.start("shop", "{}", {.id = "x"}));
            PAWL_TRY(const auto run, flows.wait("shop", "x"));
            if (run.state != RunState::done) return fail(Code::internal, run.error);
            return {};
          },
          .reset = [&bank] { bank = {}; },
          .observe = std::move(observe)};
}

TEST(FlowKitTest, AnIdempotentStepSurvivesACrashEverywhere) {
  Bank bank;
  const auto report = crash_everywhere(crash_test(bank, [&] { return std::to_string(bank.careful); }));
  EXPECT_EQ(report.undisturbed, "1");
  EXPECT_GE(report.places, 9u) << "before, in and after each of three commits";
  EXPECT_THAT(report.violations, IsEmpty()) << fmt::format("{}", fmt::join(report.violations, "\n"));
}

TEST(FlowKitTest, AStepThatIsNotIdempotentIsFound) {
  Bank bank;
  const auto report = crash_everywhere(crash_test(bank, [&] { return std::to_string(bank.careless); }));
  EXPECT_FALSE(report.violations.empty());
}

std::string picture(const RunTimeline& timeline, Time from) {
  std::vector<std::string> spans;
  for (const auto& span : timeline.spans) {
    const auto at = [&](Time time) {
      return std::chrono::round<std::chrono::milliseconds>(time - from).count();
    };
    spans.push_back(fmt::format("{} {}{} {}-{}{}", enum_name(span.kind), span.step,
                                span.attempt > 0 ? fmt::format("#{}", span.attempt) : "", at(span.from),
                                span.to ? std::to_string(at(*span.to)) : "",
                                span.outcome.empty() ? "" : " " + span.outcome));
  }
  return fmt::format("{}", fmt::join(spans, ", "));
}

TEST(FlowTimelineTest, ShowsWaitsAttemptsAndBackOffsInTheirOrder) {
  Script script;
  FlowKit kit(script.adds());
  script.steps["b"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    return step.attempt() < 2 ? busy() : Outcome::done();
  };
  kit.flows().start("letters", "{}", {.id = "x", .delay = 1s}).value();
  kit.flows().wait("letters", "x").value();
  const auto timeline = kit.flows().timeline("letters", "x").value();
  EXPECT_EQ(picture(timeline, timeline.run.created_at),
            "delay  0-1000, attempt a#1 1000-1000 done, attempt b#1 1000-1000 failed, backoff b 1000-1100, "
            "attempt b#2 1100-1100 done, attempt c#1 1100-1100 done");
  EXPECT_THAT(timeline.spans[2].error, HasSubstr("busy"));
}

TEST(FlowTimelineTest, AnInterruptedAttemptIsShownAsSuch) {
  Script script;
  FlowKit kit(script.adds());
  script.steps["a"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    Gate never;
    if (step.attempt() == 1) kit.process().wait(never, 1h);
    return Outcome::done();
  };
  kit.flows().start("letters", "{}", {.id = "x"}).value();
  kit.advance(10s);
  kit.crash();
  kit.flows().wait("letters", "x").value();
  const auto timeline = kit.flows().timeline("letters", "x").value();
  EXPECT_THAT(picture(timeline, timeline.run.created_at), HasSubstr("attempt a#1 0-10000 interrupted"));
}

TEST(FlowTimelineTest, WhatGoesOnHasNoEnd) {
  Script script;
  FlowKit kit(script.adds());
  kit.flows().start("letters", "{}", {.id = "x", .delay = 1h}).value();
  const auto timeline = kit.flows().timeline("letters", "x").value();
  EXPECT_EQ(picture(timeline, timeline.run.created_at), "delay  0-");
}

}  // namespace
}  // namespace pawl::test
