// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "workers/secrets.hpp"
#include "workers/types/all.hpp"
#include "workers/types/process.hpp"
#include "workers/views.hpp"

namespace pawl::workers {
namespace {

class SecretsOfWorkers : public testing::Test {
 protected:
  SecretsOfWorkers() {
    add_worker_types(types_, {});
    add_process_without_shim(types_);
  }
  Secrets of(std::string_view type, const WorkerView& worker = {}) const {
    return {worker, *types_.find(type).value()};
  }
  WorkerTypes types_;
};

TEST_F(SecretsOfWorkers, AreTheFieldsThatTheTypeDeclaresWhoseNamesAreShown) {
  EXPECT_EQ(of("process").hide_desired(R"j({"environment":{"TOKEN":"x","N":5},"open_files":null})j"),
            R"j({"environment":{"TOKEN":"(hidden)","N":"(hidden)"},"open_files":null})j");
  EXPECT_EQ(of("http_check")
                .hide_desired(R"j({"url":"u","headers":{"authorization":"Bearer x"},"expect_body":""})j"),
            R"j({"url":"u","headers":{"authorization":"(hidden)"},"expect_body":"(hidden)"})j");
  EXPECT_EQ(of("mqtt_client").hide_desired(R"j({"headers":"h","username":"u"})j"),
            R"j({"headers":"h","username":"(hidden)"})j");
  EXPECT_EQ(of("parent").hide_desired(R"j({"child_config":"address: x","children_count":2})j"),
            R"j({"child_config":"(hidden)","children_count":2})j");
}

TEST_F(SecretsOfWorkers, AreTheArgumentsOfACommand) {
  EXPECT_EQ(of("process").hide_desired(R"j({"command":["/bin/a","--token=x",["y"]],"n":1})j"),
            R"j({"command":["/bin/a","(hidden)",["(hidden)"]],"n":1})j");
}

TEST_F(SecretsOfWorkers, AreValuesOfVariablesWhereverTheyWerePut) {
  WorkerView worker;
  worker.spec.variables.user = {{"PASSWORD", {R"("s3cret")"}}, {"PIN", {"271828"}}};
  worker.spec.variables.global = {{"broker", {R"({"key":"k3y-of-broker"})"}}};
  const auto secrets = of("http_check", worker);
  EXPECT_EQ(secrets.hide_json(R"j({"path":"/s3cret/k3y-of-broker","pin":271828,"port":80})j"),
            R"j({"path":"/(hidden)/(hidden)","pin":"(hidden)","port":80})j");
  EXPECT_EQ(secrets.hide("cannot log in with s3cret at a"), "cannot log in with (hidden) at a");
}

TEST_F(SecretsOfWorkers, OfFewCharactersAreHiddenWhereTheyAreTheWholeText) {
  WorkerView worker;
  worker.spec.variables.user = {{"PIN", {"123"}}, {"LETTER", {"\"a\""}}, {"NONE", {"\"\""}}};
  const auto secrets = of("http_check", worker);
  EXPECT_EQ(secrets.hide_json(R"j({"pin":123,"port":1234,"unit":"a","name":"ab","empty":""})j"),
            R"j({"pin":"(hidden)","port":1234,"unit":"(hidden)","name":"ab","empty":""})j");
  EXPECT_EQ(secrets.hide("a"), "(hidden)");
  EXPECT_EQ(secrets.hide("123 a"), "123 a");
}

TEST_F(SecretsOfWorkers, AreTheUserInformationAndTheQueryOfUrls) {
  WorkerView worker;
  worker.desired.text = R"j({"url":"https://admin:pa55word@h:8443/a?token=0123456789&json"})j";
  const auto secrets = of("http_check", worker);
  EXPECT_EQ(secrets.hide_desired(worker.desired.text), R"j({"url":"https://(hidden)@h:8443/a?(hidden)"})j");
  EXPECT_EQ(secrets.hide("pa55word and 0123456789 are wrong, json is not"),
            "(hidden) and (hidden) are wrong, json is not");
  EXPECT_EQ(secrets.hide("url: \"http://u@h\" and mqtt://v:w@i/?q, then http://j/@k"),
            "url: \"http://(hidden)@h\" and mqtt://(hidden)@i/?(hidden) then http://j/@k");
  EXPECT_EQ(secrets.hide_config("url: http://u:p@{{ .HOST }}/?p={{ .P }}"),
            "url: http://(hidden)@{{ .HOST }}/?(hidden)");
}

TEST_F(SecretsOfWorkers, OfAnEarlierConfigurationCanBeAdded) {
  auto secrets = of("http_check");
  secrets.add({.config = "url: http://h\nheaders: {authorization: '{{ .A }} older'}",
               .variables = {.user = {{"A", {"\"Basic\""}}}}});
  EXPECT_EQ(secrets.hide("Basic older"), "(hidden)");
  EXPECT_EQ(secrets.hide("Basic"), "(hidden)");
}

TEST_F(SecretsOfWorkers, MayBeInWhatCannotBeRead) {
  EXPECT_EQ(of("child").hide_json("{"), "\"(hidden)\"");
  EXPECT_EQ(of("child").hide_desired("{"), "\"(hidden)\"");
}

TEST_F(SecretsOfWorkers, AreAlsoInTheirConfigurationTheirVariablesAndTheirReasons) {
  WorkerView worker;
  worker.desired.text = R"j({"environment":{"A":"x-secret"}})j";
  NodeDetail detail{.desired_version = 1};
  detail.desired = worker.desired;
  detail.observed.text = R"j({"error":"x-secret is wrong"})j";
  detail.worker.reason = "it failed with x-secret";
  detail.worker.problem = "x-secret";
  detail.history = {{.reason = "x-secret", .error = "not x-secret", .desired_version = 1}};
  detail.config = "environment: {A: '{{ .A }}'}";
  detail.user_variables["A"].text = "\"x\"";
  detail.global_variables["B"].text = "[1]";
  hide_secrets(detail, of("process", worker), {});
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

TEST_F(SecretsOfWorkers, OfEarlierConfigurationsAreHiddenWithTheWholeText) {
  NodeDetail detail{.desired_version = 3};
  detail.observed.text = R"j({"error":"old"})j";
  detail.worker.reason = "old";
  detail.worker.problem = "old";
  detail.history = {{.event = "Moved", .reason = "new", .desired_version = 3},
                    {.event = "Moved", .reason = "old", .error = "old", .desired_version = 2},
                    {.event = "Ended", .error = "unknown"}};
  hide_secrets(detail, of("process"),
               {.is_reason_current = false, .is_problem_current = false, .is_observed_current = false});
  EXPECT_EQ(detail.worker.reason + detail.worker.problem, "(hidden)(hidden)");
  EXPECT_EQ(detail.observed.text, "\"(hidden)\"");
  EXPECT_EQ(detail.history[0].reason, "new");
  EXPECT_EQ(detail.history[1].reason + detail.history[1].error, "(hidden)(hidden)");
  EXPECT_EQ(detail.history[2].reason + detail.history[2].error, "(hidden)");
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
