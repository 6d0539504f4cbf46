// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/seeds/sentinel_machine.hpp"
#include "tests/seeds/table_check.hpp"

namespace {

using namespace seeds::sentinel;
using testing::IsEmpty;

const seeds::Table kEvent{.initial = "unclassified",
                          .terminal = {"security_bugfix", "normal_bugfix", "refactor", "feature", "other"},
                          .legal = {
                              {"unclassified", "SecurityBugfix", "security_bugfix"},
                              {"unclassified", "NormalBugfix", "normal_bugfix"},
                              {"unclassified", "Refactor", "refactor"},
                              {"unclassified", "Feature", "feature"},
                              {"unclassified", "Other", "other"},
                          }};

TEST(SentinelEvent, IsClassifiedOnceAsOneOfFive) {
  EXPECT_EQ(pawl::define<event>().transitions.size(), 5U);
  EXPECT_THAT(seeds::differences<event>(kEvent), IsEmpty());
}

TEST(SentinelEvent, TheRowRefusesLikeTheInstance) {
  EXPECT_THAT(seeds::row_differences(event_rows, kEvent), IsEmpty());
}

TEST(SentinelEvent, AnUnclassifiedRowIsNull) {
  EXPECT_EQ(event_rows.update<SecurityBugfix>({7}).text,
            R"(UPDATE "events" SET "classification" = 'security_bugfix' WHERE "id" = ?1)"
            R"( AND "classification" IS NULL)");
}

// Two transitions are the document's; giving up and asking for more attempts were added to end its retries.
TEST(SentinelUpstreamVuln, IsAnalysedUntilItIsPublishedOrGivenUp) {
  const seeds::Table table{.initial = "analyzing",
                           .terminal = {"published"},
                           .legal = {
                               {"analyzing", "Publish", "published"},
                               {"analyzing", "AnalysisFailed", "analyzing"},
                               {"analyzing", "GiveUp", "failed"},
                               {"failed", "RetryAnalysis", "analyzing"},
                           }};
  EXPECT_EQ(pawl::define<upstream_vuln>().transitions.size(), 4U);
  EXPECT_THAT(seeds::differences<upstream_vuln>(table), IsEmpty());
}

// Three transitions are the document's; excluded projects and searches without a verdict were added.
TEST(SentinelClientPipeline, EndsWithAVerdict) {
  const seeds::Table table{.initial = "pending",
                           .terminal = {"verified", "not_affect", "inconclusive"},
                           .legal = {
                               {"pending", "Exclude", "not_affect"},
                               {"pending", "SearchPath", "path_searching"},
                               {"path_searching", "PathFound", "verified"},
                               {"path_searching", "NoPath", "not_affect"},
                               {"path_searching", "NoVerdict", "inconclusive"},
                           }};
  EXPECT_EQ(pawl::define<client_pipeline>().transitions.size(), 5U);
  EXPECT_THAT(seeds::differences<client_pipeline>(table), IsEmpty());
}

// Five transitions are the document's; dismissing a false positive was added.
const seeds::Table kClientStatus{.initial = "undecided",
                                 .terminal = {"fixed", "not_affect", "dismissed"},
                                 .legal = {
                                     {"undecided", "Record", "recorded"},
                                     {"undecided", "Clear", "not_affect"},
                                     {"recorded", "Report", "reported"},
                                     {"reported", "Confirm", "confirmed"},
                                     {"confirmed", "Fix", "fixed"},
                                     {"recorded", "Dismiss", "dismissed"},
                                     {"reported", "Dismiss", "dismissed"},
                                     {"confirmed", "Dismiss", "dismissed"},
                                 }};

TEST(SentinelClientStatus, AdvancesOneStepAtATimeUnlessDismissed) {
  EXPECT_EQ(pawl::define<client_status>().transitions.size(), 8U);
  EXPECT_THAT(seeds::differences<client_status>(kClientStatus), IsEmpty());
}

TEST(SentinelClientStatus, TheRowRefusesLikeTheInstance) {
  EXPECT_THAT(seeds::row_differences(client_status_rows, kClientStatus), IsEmpty());
}

TEST(SentinelClientStatus, AnUndecidedRowIsNull) {
  EXPECT_EQ(client_status_rows.update<Record>({7}).text,
            R"(UPDATE "client_vulns" SET "status" = 'recorded' WHERE "id" = ?1 AND "status" IS NULL)");
  EXPECT_EQ(client_status_rows.update<Clear>({7}).text,
            R"(UPDATE "client_vulns" SET "status" = 'not_affect' WHERE "id" = ?1 AND "status" IS NULL)");
}

TEST(SentinelClientStatus, ADismissalAcceptsThreeStatuses) {
  EXPECT_EQ(client_status_rows.update<Dismiss>({7}).text,
            R"(UPDATE "client_vulns" SET "status" = 'dismissed' WHERE "id" = ?1)"
            R"( AND "status" IN ('recorded', 'reported', 'confirmed'))");
}

}  // namespace
