// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/seeds/feeds_machine.hpp"
#include "tests/seeds/table_check.hpp"

namespace {

using namespace seeds::feeds;
using testing::IsEmpty;

TEST(FeedsMacro, HasExactlyTheSixTransitionsOfTheDocument) {
  const seeds::Table table{.initial = "BOOTSTRAPPING",
                           .terminal = {"DRAINING"},
                           .legal = {
                               {"BOOTSTRAPPING", "PROVIDER_STARTED", "ORCHESTRATING"},
                               {"BOOTSTRAPPING", "Shutdown", "DRAINING"},
                               {"ORCHESTRATING", "PROVIDER_COMPLETED", "STABILIZING"},
                               {"ORCHESTRATING", "Shutdown", "DRAINING"},
                               {"STABILIZING", "RestartProviders", "ORCHESTRATING"},
                               {"STABILIZING", "Shutdown", "DRAINING"},
                           }};
  EXPECT_EQ(pawl::define<macro>().transitions.size(), 6U);
  EXPECT_THAT(seeds::differences<macro>(table), IsEmpty());
}

TEST(FeedsMacro, StabilizesOnlyWhenTheLastProviderIsComplete) {
  pawl::Local<macro> run({}, Macro::orchestrating);
  EXPECT_EQ(run.send(ProviderCompleted{.unfinished = 1}).error().code(), pawl::Code::guard_refused);
  EXPECT_EQ(run.state(), Macro::orchestrating);
}

TEST(FeedsMacro, ADrainedRunIsFollowedByANewOne) { EXPECT_TRUE(pawl::define<macro>().generations); }

TEST(FeedsProvider, HasExactlyTheFourteenTransitionsOfTheDocument) {
  const seeds::Table table{
      .initial = "IDLE",
      .terminal = {"TERMINATED"},
      .legal =
          {
              {"IDLE", "Start", "ACQUIRING"},
              {"ACQUIRING", "QUOTA_GRANTED", "RUNNING"},
              {"ACQUIRING", "Pause", "PAUSED"},
              {"ACQUIRING", "Stop", "TERMINATED"},
              {"RUNNING", "QUOTA_REVOKED", "WAITING_QUOTA"},
              {"RUNNING", "RATE_LIMITED", "WAITING_BACKOFF"},
              {"RUNNING", "Pause", "PAUSED"},
              {"RUNNING", "Stop", "TERMINATED"},
              {"WAITING_QUOTA", "Retry", "ACQUIRING"},
              {"WAITING_QUOTA", "Stop", "TERMINATED"},
              {"WAITING_BACKOFF", "Retry", "ACQUIRING"},
              {"WAITING_BACKOFF", "Stop", "TERMINATED"},
              {"PAUSED", "Resume", "ACQUIRING"},
              {"PAUSED", "Stop", "TERMINATED"},
          },
      // IDLE, PAUSED, WAITING_BACKOFF and ACQUIRING are kept; the finished are left alone.
      .recovery = {{"RUNNING", "ACQUIRING"}, {"WAITING_QUOTA", "ACQUIRING"}}};
  EXPECT_EQ(pawl::define<provider>().transitions.size(), 14U);
  EXPECT_THAT(seeds::differences<provider>(table), IsEmpty());
}

TEST(FeedsProvider, AGrantOfNothingLeavesItAcquiring) {
  pawl::Local<provider> cve({}, Provider::acquiring);
  EXPECT_EQ(cve.send(QuotaGranted{.permits = 0}).error().code(), pawl::Code::guard_refused);
  EXPECT_EQ(cve.state(), Provider::acquiring);
}

TEST(FeedsProvider, HoldsPermitsOnlyWhileItRuns) {
  pawl::Local<provider> cve({}, Provider::acquiring);
  ASSERT_TRUE(cve.send(QuotaGranted{.permits = 3}));
  EXPECT_EQ(cve.data().permits_held, 3);
  ASSERT_TRUE(cve.send(RateLimited{}));
  EXPECT_EQ(cve.data().permits_held, 0);
}

TEST(FeedsProvider, TheOutcomeIsKeptApartFromTheState) {
  pawl::Local<provider> cve({}, Provider::running);
  ASSERT_TRUE(cve.send(Stop{.outcome = Outcome::failed}));
  EXPECT_EQ(cve.state(), Provider::terminated);
  EXPECT_EQ(cve.data().outcome, Outcome::failed);
}

TEST(FeedsProvider, ATerminatedRunIsFollowedByANewOne) { EXPECT_TRUE(pawl::define<provider>().generations); }

}  // namespace
