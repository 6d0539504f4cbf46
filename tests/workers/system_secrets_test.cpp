// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "workers/secrets.hpp"
#include "workers/views.hpp"

namespace pawl::workers {
namespace {

TEST(Secrets, AreTheValuesOfEnvironmentsAndHeadersWhoseNamesAreShown) {
  const Secrets secrets{WorkerView{}};
  EXPECT_EQ(secrets.hide_json(R"j({"environment":{"TOKEN":"x","N":5},"open_files":null})j"),
            R"j({"environment":{"TOKEN":"(hidden)","N":"(hidden)"},"open_files":null})j");
  EXPECT_EQ(secrets.hide_json(R"j({"url":"u","headers":{"authorization":"Bearer x"}})j"),
            R"j({"url":"u","headers":{"authorization":"(hidden)"}})j");
}

TEST(Secrets, AreTheArgumentsOfACommand) {
  EXPECT_EQ(Secrets{WorkerView{}}.hide_json(R"j({"command":["/bin/a","--token=x",["y"]],"n":1})j"),
            R"j({"command":["/bin/a","(hidden)",["(hidden)"]],"n":1})j");
}

TEST(Secrets, AreInWhatAParentGivesToItsChildrenToo) {
  EXPECT_EQ(
      Secrets{WorkerView{}}.hide_json(R"j({"child_config":"environment: {TOKEN: x}","children_count":2})j"),
      R"j({"child_config":"(hidden)","children_count":2})j");
}

TEST(Secrets, AreValuesOfVariablesWhereverTheyWerePut) {
  WorkerView worker;
  worker.spec.variables.user = {{"PASSWORD", {R"("s3cret")"}}, {"PIN", {"271828"}}, {"SHORT", {"\"a\""}}};
  worker.spec.variables.global = {{"broker", {R"({"key":"k3y-of-broker"})"}}};
  const Secrets secrets(worker);
  EXPECT_EQ(secrets.hide_json(R"j({"url":"http://a/?p=s3cret&k=k3y-of-broker","pin":271828,"port":80})j"),
            R"j({"url":"http://a/?p=(hidden)&k=(hidden)","pin":"(hidden)","port":80})j");
  EXPECT_EQ(secrets.hide("cannot log in with s3cret at a"), "cannot log in with (hidden) at a");
}

TEST(Secrets, MayBeInWhatCannotBeRead) { EXPECT_EQ(Secrets{WorkerView{}}.hide_json("{"), "\"(hidden)\""); }

TEST(Secrets, OfAWorkerAreAlsoInItsConfigurationItsVariablesAndWhatIsSaidOfIt) {
  WorkerView worker;
  worker.desired.text = R"j({"environment":{"A":"x-secret"}})j";
  NodeDetail detail;
  detail.desired = worker.desired;
  detail.observed.text = R"j({"error":"x-secret is wrong"})j";
  detail.worker.reason = "it failed with x-secret";
  detail.worker.problem = "x-secret";
  detail.history = {{.reason = "x-secret", .error = "not x-secret"}};
  detail.config = "environment: {A: '{{ .A }}'}";
  detail.user_variables["A"].text = "\"x\"";
  detail.global_variables["B"].text = "[1]";
  hide_secrets(detail, Secrets(worker));
  EXPECT_EQ(detail.desired.text, R"j({"environment":{"A":"(hidden)"}})j");
  EXPECT_EQ(detail.observed.text, R"j({"error":"(hidden) is wrong"})j");
  EXPECT_EQ(detail.worker.reason, "it failed with (hidden)");
  EXPECT_EQ(detail.worker.problem, "(hidden)");
  EXPECT_EQ(detail.history[0].reason, "(hidden)");
  EXPECT_EQ(detail.history[0].error, "not (hidden)");
  EXPECT_EQ(detail.config, "(hidden)");
  EXPECT_EQ(detail.user_variables["A"].text, "\"(hidden)\"");
  EXPECT_EQ(detail.global_variables["B"].text, "\"(hidden)\"");
}

TEST(Secrets, OfAMistakeAreWhatWasWritten) {
  ProblemView problem{.file = "site.yaml",
                      .line = 7,
                      .key = "children[0]",
                      .problem = "x-secret is unknown",
                      .expected = "a text",
                      .actual = "x-secret",
                      .suggestion = "x-secret",
                      .text = "x-secret"};
  hide_secrets(problem);
  EXPECT_EQ(problem.text, "site.yaml:7: children[0]: (hidden)");
  EXPECT_EQ(problem.problem + problem.actual + problem.suggestion, "(hidden)");
}

}  // namespace
}  // namespace pawl::workers
