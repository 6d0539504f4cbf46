// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "workers/partial_tree.hpp"
#include "workers/types/all.hpp"
#include "workers/types/process.hpp"

namespace pawl::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GoodPartOfAFile : public ::testing::Test {
 protected:
  GoodPartOfAFile() { add_worker_types(types_, {}); }

  PartialTree take(std::string_view text) { return read_partial_tree(text, "site.yaml", types_, now_); }
  static std::vector<std::string> names(const PartialTree& part) {
    std::vector<std::string> found;
    if (part.tree) {
      for (const auto& child : part.tree->children) found.push_back(child.name + ":" + child.worker_type);
    }
    return found;
  }

  WorkerTypes types_;
  TreeSpec now_{
      .children = {{.name = "old", .worker_type = "child"}, {.name = "pump", .worker_type = "slow"}}};
};

TEST_F(GoodPartOfAFile, IsAllOfItWhereThereIsNoMistake) {
  const auto part = take("children:\n  - {name: pump, workerType: child}\n");
  EXPECT_THAT(part.problems, IsEmpty());
  EXPECT_THAT(names(part), ElementsAre("pump:child"));
}

TEST_F(GoodPartOfAFile, LeavesAChildWithAMistakeAsItIsAndTakesTheOthers) {
  const auto part = take(
      "children:\n"
      "  - {name: pump, workerType: chlid}\n"
      "  - {name: new, workerType: child}\n");
  ASSERT_EQ(part.problems.size(), 1U);
  EXPECT_EQ(part.problems[0].line, 2);
  EXPECT_EQ(part.problems[0].suggestion, "child");
  EXPECT_THAT(names(part), ElementsAre("new:child", "pump:slow"));
}

TEST_F(GoodPartOfAFile, DoesNotMakeANewChildWithAMistake) {
  const auto part = take("children:\n  - {name: fresh, workerType: chlid}\n");
  EXPECT_EQ(part.problems.size(), 1U);
  EXPECT_THAT(names(part), IsEmpty());
  EXPECT_TRUE(part.tree.has_value());
}

TEST_F(GoodPartOfAFile, RemovesNobodyWhereANameCannotBeRead) {
  const auto part = take("children:\n  - {nmae: pump, workerType: child}\n");
  EXPECT_FALSE(part.problems.empty());
  EXPECT_THAT(names(part), ElementsAre("old:child", "pump:slow"));
}

TEST_F(GoodPartOfAFile, IsNothingWhereTheMistakeIsOutsideOfChildren) {
  EXPECT_FALSE(take("childern: []\n").tree.has_value());
  EXPECT_FALSE(take("children: [\n").tree.has_value());
}

TEST_F(GoodPartOfAFile, KnowsTheKeysOfAConfigurationAndTheirLines) {
  const auto part = take(
      "children:\n"
      "  - name: pump\n"
      "    workerType: parent\n"
      "    userSpec:\n"
      "      config: |\n"
      "        children_count: 1\n"
      "        child_worker_typ: child\n");
  ASSERT_EQ(part.problems.size(), 1U);
  EXPECT_EQ(part.problems[0].line, 7);
  EXPECT_EQ(part.problems[0].key, "children[0].userSpec.config.child_worker_typ");
  EXPECT_EQ(part.problems[0].suggestion, "child_worker_type");
  EXPECT_THAT(names(part), ElementsAre("pump:slow"));
}

TEST_F(GoodPartOfAFile, RefusesAValueThatTheTypeDoesNotTake) {
  const auto part = take(
      "children:\n"
      "  - name: pump\n"
      "    workerType: slow\n"
      "    userSpec:\n"
      "      config:\n"
      "        delay_seconds: many\n");
  ASSERT_EQ(part.problems.size(), 1U);
  EXPECT_EQ(part.problems[0].line, 6);
  EXPECT_EQ(part.problems[0].key, "children[0].userSpec.config.delay_seconds");
  EXPECT_THAT(part.problems[0].expected, HasSubstr("integer"));
  EXPECT_EQ(part.problems[0].actual, "the text \"many\"");
}

TEST_F(GoodPartOfAFile, SaysWhatATypeWouldTakeAndWhatItGot) {
  const auto of_config = [this](std::string_view type, std::string_view config) {
    const auto part =
        take(fmt::format("children:\n  - name: new\n    workerType: {}\n    userSpec:\n"
                         "      config: {}\n",
                         type, config));
    return part.problems.size() == 1 ? describe(part.problems[0]) : fmt::format("{}", part.problems.size());
  };
  EXPECT_EQ(
      of_config("tcp_check", "{address: '127.0.0.1:80', timeout: -1s}"),
      "site.yaml:5: children[0].userSpec.config.timeout: timeout is -1s; it is 0.001s to 2s, because an "
      "observation has to be made within 2.2s; expected a valid value, got the text \"-1s\"");
  EXPECT_EQ(
      of_config("http_check", "{timeout: 1s}"),
      "site.yaml:5: children[0].userSpec.config.url: a http_check needs this key; expected a value for it, "
      "got nothing");
  EXPECT_EQ(of_config("mqtt_client", "{url: 'mqtt://a:1', topics: [{topic: t, qos: high}]}"),
            "site.yaml:5: children[0].userSpec.config.topics[0].qos: this value is not valid for a "
            "mqtt_client; "
            "expected integer, got the text \"high\"");
}

TEST_F(GoodPartOfAFile, LeavesOutWhatThisProgramHasNoTypeForAndTakesTheOthers) {
  now_.children.push_back({.name = "gone", .worker_type = "of_another_release"});
  const auto part = take(
      "children:\n"
      "  - {name: gone, workerType: of_another_release}\n"
      "  - {name: new, workerType: child}\n");
  EXPECT_EQ(part.problems.size(), 1U);
  EXPECT_THAT(names(part), ElementsAre("new:child"));
}

TEST_F(GoodPartOfAFile, KeepsProcessesAsTheyAreWhereThereIsNoShim) {
  add_process_without_shim(types_);
  now_.children.push_back({.name = "ticker", .worker_type = "process"});
  const auto part = take(
      "children:\n"
      "  - {name: ticker, workerType: process, userSpec: {config: {command: [/bin/true]}}}\n"
      "  - {name: new, workerType: child}\n");
  ASSERT_EQ(part.problems.size(), 1U);
  EXPECT_THAT(part.problems[0].problem, HasSubstr("pawl-shim"));
  EXPECT_THAT(names(part), ElementsAre("new:child", "ticker:process"));
}

/// One of the mistakes that people make.
struct Mistake {
  std::string name;
  std::string child;  ///< which begins on line 4
  int line = 4;
  std::string key;
  std::string suggestion{};
};

class AMistake : public GoodPartOfAFile, public ::testing::WithParamInterface<Mistake> {};

TEST_P(AMistake, IsNamedWithItsPlaceAndDisturbsNoOtherWorker) {
  const auto part = take(
      "children:\n"
      "  - {name: old, workerType: child, userSpec: {config: 'address: here'}}\n"
      "  - {name: new, workerType: child}\n" +
      GetParam().child);
  ASSERT_EQ(part.problems.size(), 1U);
  const auto& problem = part.problems[0];
  EXPECT_EQ(problem.file, "site.yaml");
  EXPECT_EQ(problem.line, GetParam().line);
  EXPECT_EQ(problem.key, GetParam().key);
  EXPECT_NE(problem.problem, "");
  EXPECT_NE(problem.expected, "") << describe(problem);
  EXPECT_NE(problem.actual, "") << describe(problem);
  EXPECT_EQ(problem.suggestion, GetParam().suggestion);
  // The others are as the file says, this one is as it was, and it can all be applied.
  ASSERT_TRUE(part.tree.has_value());
  std::map<std::string, ChildSpec> children;
  for (const auto& child : part.tree->children) children.emplace(child.name, child);
  EXPECT_EQ(children["old"].user_spec.config, "address: here");
  EXPECT_EQ(children["new"].worker_type, "child");
  EXPECT_EQ(children["pump"], now_.children[1]);
  EXPECT_EQ(children.size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(
    OfSixKinds, AMistake,
    ::testing::Values(
        Mistake{.name = "UnknownType",
                .child = "  - {name: pump, workerType: slwo}\n",
                .key = "children[2].workerType",
                .suggestion = "slow"},
        Mistake{.name = "BadTemplate",
                .child = "  - name: pump\n    workerType: slow\n    userSpec:\n      config: |\n"
                         "        delay_seconds: {{ .DELAY | int }}\n",
                .line = 8,
                .key = "children[2].userSpec.config"},
        Mistake{.name = "UnknownVariable",
                .child = "  - name: pump\n    workerType: slow\n    userSpec:\n      config: |\n"
                         "        delay_seconds: {{ .DELYA }}\n      variables: {user: {DELAY: 5}}\n",
                .line = 8,
                .key = "children[2].userSpec.config",
                .suggestion = "{{ .DELAY }}"},
        Mistake{.name = "TypeMismatch",
                .child = "  - name: pump\n    workerType: slow\n    userSpec:\n      config: |\n"
                         "        delay_seconds: soon\n",
                .line = 8,
                .key = "children[2].userSpec.config.delay_seconds"},
        Mistake{.name = "DuplicateName",
                .child = "  - {name: pump, workerType: slow}\n  - {name: pump, workerType: slow}\n",
                .line = 5,
                .key = "children[3].name"},
        Mistake{.name = "ReservedVariable",
                .child = "  - {name: pump, workerType: slow, userSpec: {variables: {user: {internal: 1}}}}\n",
                .key = "children[2].userSpec.variables.user.internal"},
        Mistake{.name = "UnknownState",
                .child = "  - {name: pump, workerType: slow, stateMapping: {Running: Conected}}\n",
                .key = "children[2].stateMapping.Running",
                .suggestion = "Connected"},
        Mistake{.name = "NameThatIsAPath",
                .child = "  - {name: .., workerType: slow}\n",
                .key = "children[2].name"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pawl::workers
