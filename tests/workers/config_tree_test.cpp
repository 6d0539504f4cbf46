// SPDX-License-Identifier: Apache-2.0
#include "workers/config/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/workers/config_types.hpp"
#include "workers/config/nested.hpp"

namespace pawl::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReadTree : public testing::Test {
 protected:
  TreeSpec read(std::string_view text) const {
    auto tree = read_tree(text, "site.yaml", &types_);
    EXPECT_TRUE(tree.has_value()) << tree.error().message();
    return tree ? *std::move(tree) : TreeSpec{};
  }

  /// The mistakes as lines.
  std::vector<std::string> mistakes(std::string_view text) const {
    std::vector<std::string> lines;
    for (const auto& problem : check_tree(text, "site.yaml", &types_)) lines.push_back(describe(problem));
    return lines;
  }

  /// Those of one worker, whose further keys begin on line 4.
  std::vector<std::string> mistakes_of_pump(const std::string& more) const {
    return mistakes("children:\n  - name: p\n    workerType: pump\n" + more);
  }

  const WorkerTypes types_ = types_for_config();
};

TEST_F(ReadTree, AFileSaysEverythingOfAWorker) {
  const auto tree = read(R"(
variables:
  user: {unit: bar}
  global: {site: north}
children:
  - name: pump-1
    workerType: mqtt_client
    enabled: false
    stateMapping: {Running: Connected, Stopped: park}
    userSpec:
      config: |
        url: tcp://{{ .IP }}:{{ .PORT }}
        site: {{ .global.site }} in {{ .unit }}
      variables:
        user: {IP: 10.0.0.7, PORT: 1883}
        global: {line: [1, 2.5]}
)");
  EXPECT_EQ(tree.variables.user.at("unit").text, "\"bar\"");
  EXPECT_EQ(tree.variables.global.at("site").text, "\"north\"");
  ASSERT_EQ(tree.children.size(), 1U);
  const auto& child = tree.children[0];
  EXPECT_EQ(child.name, "pump-1");
  EXPECT_EQ(child.worker_type, "mqtt_client");
  EXPECT_FALSE(child.enabled);
  EXPECT_EQ(child.user_spec.config,
            "url: tcp://{{ .IP }}:{{ .PORT }}\nsite: {{ .global.site }} in {{ .unit }}\n");
  EXPECT_EQ(child.user_spec.variables.user.at("IP").text, "\"10.0.0.7\"");
  EXPECT_EQ(child.user_spec.variables.user.at("PORT").text, "1883");
  EXPECT_EQ(child.user_spec.variables.global.at("line").text, "[1,2.5]");
  EXPECT_THAT(child.state_mapping,
              ElementsAre(std::pair("Running", "Connected"), std::pair("Stopped", "park")));
}

TEST_F(ReadTree, AWorkerRunsUnlessItIsNotEnabled) {
  EXPECT_TRUE(read("children: [{name: p, workerType: pump}]").children.at(0).enabled);
}

TEST_F(ReadTree, AKeyWithoutAValueIsAsIfItWereNotThere) {
  const auto tree = read(
      "variables:\nchildren:\n  - name: p\n    workerType: pump\n    userSpec:\n      config:\n"
      "      variables:\n        user:\n    stateMapping:\n");
  EXPECT_EQ(tree.children.at(0).user_spec.config, "");
}

TEST_F(ReadTree, AFileWithoutChildrenIsRefusedSoThatACutOneDoesNotRemoveAll) {
  EXPECT_THAT(mistakes("variables: {}\n"),
              ElementsAre("site.yaml:1: children: the key is missing or has no value; expected a list of "
                          "workers; [] for none"));
  EXPECT_THAT(mistakes("children:\n"), ElementsAre(HasSubstr("[] for none")));
  EXPECT_THAT(mistakes(""), ElementsAre(HasSubstr("children, variables, location, got nothing")));
  EXPECT_THAT(read("children: []").children, IsEmpty());
}

TEST_F(ReadTree, AConfigThatIsAMappingIsKeptAsJson) {
  const auto tree = read(
      "children:\n  - name: p\n    workerType: pump\n    userSpec:\n      config:\n        rpm: 100\n"
      "        names: [a, '{{ .N }}']\n      variables: {user: {N: x}}\n");
  EXPECT_EQ(tree.children.at(0).user_spec.config, R"({"rpm":100,"names":["a","{{ .N }}"]})");
}

TEST_F(ReadTree, StatesAreWrittenInAnyLetters) {
  const auto tree = read(
      "children: [{name: p, workerType: mqtt_client, stateMapping: {running: CONNECTED, STOPPED: Park}}]");
  EXPECT_THAT(tree.children.at(0).state_mapping,
              ElementsAre(std::pair("Running", "Connected"), std::pair("Stopped", "park")));
}

TEST_F(ReadTree, ThoseWordsAreTargetsThatTheSupervisorTakes) {
  for (const auto& [word, target] :
       {std::pair("running", "run"), {"parked", "park"}, {"Stopped", "Stopped"}}) {
    const auto tree = read(
        fmt::format("children: [{{name: p, workerType: mqtt_client, stateMapping: {{Running: {}}}}}]", word));
    EXPECT_THAT(tree.children.at(0).state_mapping, ElementsAre(std::pair("Running", target)));
  }
  const auto tree = read("children: [{name: p, workerType: pump, stateMapping: {Running: running}}]");
  EXPECT_THAT(tree.children.at(0).state_mapping, ElementsAre(std::pair("Running", "Running")));
}

TEST_F(ReadTree, NamesThatAreStepsInAPathAreRefusedAsTheSupervisorRefusesThem) {
  for (const auto* name : {".", ".."}) {
    EXPECT_THAT(mistakes(fmt::format("children: [{{name: {}, workerType: pump}}]", name)),
                ElementsAre(HasSubstr("the name cannot be part of a path")));
  }
}

TEST_F(ReadTree, TheTypeOfTheTopIsNoneOfTheUsers) {
  auto types = types_for_config();
  WorkerType top;
  top.name = "application";
  types.add(std::move(top));
  const auto found = check_tree("children: [{name: a, workerType: application}]", "f", &types);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].expected, "one of mqtt_client, pump");
}

TEST_F(ReadTree, ALocationGivesAVariable) {
  const auto tree = read(
      "location: [acme, north]\nchildren:\n  - {name: a, workerType: pump, location: ['', south, hall]}\n"
      "  - {name: b, workerType: pump}\n");
  EXPECT_EQ(tree.variables.user.at("location_path").text, "\"acme.north\"");
  EXPECT_EQ(tree.children.at(0).user_spec.variables.user.at("location_path").text, "\"acme.south.hall\"");
  EXPECT_THAT(tree.children.at(1).user_spec.variables.user, IsEmpty());
}

TEST_F(ReadTree, ALocationIsKnownToTheTemplate) {
  EXPECT_THAT(mistakes_of_pump("    location: [acme]\n    userSpec: {config: 'at {{ .location_path }}'}\n"),
              IsEmpty());
}

TEST_F(ReadTree, ALocationHasFiveLevelsOfText) {
  EXPECT_THAT(mistakes_of_pump("    location: [a, b, c, d, e, f]\n"),
              ElementsAre("site.yaml:4: children[0].location: the location has too many levels; expected at "
                          "most five: enterprise, site, area, line, cell, got 6"));
  EXPECT_THAT(mistakes_of_pump("    location: acme\n"), ElementsAre(HasSubstr("got the text \"acme\"")));
  EXPECT_THAT(mistakes_of_pump("    location:\n      - acme\n      - 5\n"),
              ElementsAre("site.yaml:6: children[0].location[1]: the value is of another kind; expected the "
                          "name of a level, got the integer 5; did you mean \"5\", in quotes?"));
}

TEST_F(ReadTree, ALocationAndItsVariableAreNotBothGiven) {
  EXPECT_THAT(
      mistakes_of_pump("    location: [a]\n    userSpec: {variables: {user: {location_path: b}}}\n"),
      ElementsAre(HasSubstr("site.yaml:4: children[0].location: the location gives the user variable")));
}

TEST_F(ReadTree, AllMistakesAreReportedByTheirLines) {
  EXPECT_THAT(
      mistakes(R"(childs: 1
children:
  - nam: a
    workerType: pumpe
  - name: b
    workerType: pump
    enabled: yes
  - name: b
    workerType: pump
)"),
      ElementsAre(
          "site.yaml:1: childs: there is no such key; expected one of children, variables, "
          "location, got \"childs\"",
          "site.yaml:3: children[0].nam: there is no such key; expected one of name, "
          "workerType, userSpec, stateMapping, enabled, location, children, got \"nam\"; did you mean "
          "name?",
          "site.yaml:3: children[0]: the worker has no name; expected name: pump-1",
          "site.yaml:4: children[0].workerType: there is no such worker type; expected "
          "one of mqtt_client, pump, got \"pumpe\"; did you mean pump?",
          "site.yaml:7: children[1].enabled: the value is of another kind; expected true or "
          "false, got the text \"yes\"",
          "site.yaml:8: children[2].name: the name \"b\" is given twice, on line 5 and on "
          "line 8; expected a name of its own for each worker, got \"b\""));
}

TEST_F(ReadTree, TheErrorListsEveryMistakeOnItsLine) {
  const auto tree = read_tree("children:\n  - name: a b\n    workerType: x\n", "site.yaml", &types_);
  ASSERT_FALSE(tree.has_value());
  EXPECT_EQ(tree.error().code(), Code::config_invalid);
  EXPECT_EQ(
      tree.error().message(),
      "site.yaml:2: children[0].name: the name cannot be part of a path; expected letters, digits, '_', "
      "'-' and '.', at most 63; not . or .., got \"a b\"\n"
      "site.yaml:3: children[0].workerType: there is no such worker type; expected one of "
      "mqtt_client, pump, got \"x\"");
  EXPECT_EQ(tree.error().field("file"), "site.yaml");
  EXPECT_EQ(tree.error().field("line"), "2");
  EXPECT_EQ(tree.error().field("key"), "children[0].name");
  EXPECT_EQ(tree.error().field("problems"), "2");
}

TEST_F(ReadTree, ProgramsGetTheParts) {
  EXPECT_THAT(check_tree("children:\n  - {name: a, workerType: Pump}\n", "f", &types_),
              ElementsAre(ConfigProblem{.file = "f",
                                        .line = 2,
                                        .key = "children[0].workerType",
                                        .problem = "there is no such worker type",
                                        .expected = "one of mqtt_client, pump",
                                        .actual = "\"Pump\"",
                                        .suggestion = "pump"}));
}

TEST_F(ReadTree, WhatIsNotYamlIsOneMistake) {
  EXPECT_THAT(mistakes("children:\n  - name: a\n    name: b\n"),
              ElementsAre("site.yaml:3: children[0].name: the key \"name\" is given twice, first on line 2; "
                          "leave one of them out"));
  EXPECT_THAT(mistakes("children: [\n"), ElementsAre(HasSubstr("site.yaml:2: [ is not closed")));
}

TEST_F(ReadTree, ValuesOfAnotherKindAreRefused) {
  EXPECT_THAT(mistakes("- a\n"), ElementsAre(HasSubstr("expected a mapping with the keys children")));
  EXPECT_THAT(mistakes("children: {a: 1}\n"), ElementsAre(HasSubstr("expected a list of workers")));
  EXPECT_THAT(mistakes("children: [pump]\n"), ElementsAre(HasSubstr("children[0]: the value is of another")));
  EXPECT_THAT(mistakes("children: [{name: 5, workerType: pump}]\n"),
              ElementsAre(HasSubstr("expected a name, got the integer 5; did you mean \"5\", in quotes?")));
  EXPECT_THAT(mistakes_of_pump("    userSpec: x\n"), ElementsAre(HasSubstr("keys config, variables")));
  EXPECT_THAT(mistakes_of_pump("    userSpec: {config: [1]}\n"),
              ElementsAre(HasSubstr("expected a text block (config: |) or a mapping, got a list")));
  EXPECT_THAT(mistakes_of_pump("    userSpec: {variables: {user: [1]}}\n"),
              ElementsAre(HasSubstr("expected names with values")));
  EXPECT_THAT(mistakes_of_pump("    stateMapping: run\n"), ElementsAre(HasSubstr("states of the parent")));
  EXPECT_THAT(mistakes_of_pump("    stateMapping: {Running: true}\n"),
              ElementsAre(HasSubstr("expected a state of the worker, run or park, got true")));
}

TEST_F(ReadTree, NamesHaveLimits) {
  const auto of = [&](const std::string& name) {
    return mistakes("children: [{name: \"" + name + "\", workerType: pump}]");
  };
  EXPECT_THAT(of(std::string(63, 'a')), IsEmpty());
  EXPECT_THAT(of("A-z_0.9"), IsEmpty());
  for (const std::string name : {"", "a/b", "ä", "a b"}) {
    EXPECT_THAT(of(name), ElementsAre(HasSubstr("cannot be part of a path"))) << name;
  }
  EXPECT_THAT(of(std::string(64, 'a')), ElementsAre(HasSubstr("at most 63")));
}

TEST_F(ReadTree, ReservedAndUnusableVariablesAreRefused) {
  const auto found = mistakes_of_pump(
      "    userSpec:\n      variables:\n        user:\n          global: 1\n          internal: 2\n"
      "          1st: 3\n        global:\n          a-b: 4\n        internal: {}\n");
  ASSERT_EQ(found.size(), 5U);
  EXPECT_THAT(found[0], HasSubstr("site.yaml:7: children[0].userSpec.variables.user.global: "));
  EXPECT_THAT(found[1], HasSubstr("site.yaml:8: children[0].userSpec.variables.user.internal: "));
  EXPECT_THAT(found[2], HasSubstr("site.yaml:9: children[0].userSpec.variables.user.1st: "));
  EXPECT_THAT(found[3], HasSubstr("site.yaml:11: children[0].userSpec.variables.global.a-b: "));
  EXPECT_THAT(found[4], HasSubstr("site.yaml:12: children[0].userSpec.variables.internal: there is no such"));
}

TEST_F(ReadTree, AWrongTemplateIsFoundOnItsLineOfTheFile) {
  const auto found = mistakes_of_pump("    userSpec:\n      config: |\n        a: 1\n        b: {{ x }\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0], HasSubstr("site.yaml:7: children[0].userSpec.config: "));
  EXPECT_THAT(found[0], testing::Not(HasSubstr("column")));
}

TEST_F(ReadTree, EveryMissingVariableIsFoundOnItsLine) {
  const auto found = mistakes_of_pump(
      "    userSpec:\n      config: |\n        ä: {{ .A }} {{ .IPP }}\n        b: {{ .IP }}\n        c: {{ "
      ".global.x }}\n      variables: {user: {IP: x, A: 1}}\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[0], HasSubstr("site.yaml:6: children[0].userSpec.config: there is no variable .IPP"));
  EXPECT_THAT(found[0], HasSubstr("did you mean {{ .IP }}?"));
  EXPECT_THAT(found[1],
              HasSubstr("site.yaml:8: children[0].userSpec.config: there is no variable .global.x"));
}

TEST_F(ReadTree, AWrongTemplateInAMappingIsFoundAtItsValue) {
  EXPECT_THAT(
      mistakes_of_pump("    userSpec:\n      config:\n        a: 1\n        b: ['{{ .X }}']\n"),
      ElementsAre(HasSubstr("site.yaml:7: children[0].userSpec.config.b[0]: there is no variable .X")));
  EXPECT_THAT(mistakes_of_pump("    userSpec:\n      config:\n        b: '{{ \"x\" }}'\n"),
              ElementsAre(HasSubstr("expected a text block (config: |) where expressions have quotes")));
}

TEST_F(ReadTree, UnknownStatesInAMappingAreRefused) {
  EXPECT_THAT(mistakes_of_pump("    stateMapping:\n      active: run\n      Runing: park\n"),
              ElementsAre("site.yaml:5: children[0].stateMapping.active: the parent has no such state; "
                          "expected one of Stopped, Running, got \"active\"",
                          "site.yaml:6: children[0].stateMapping.Runing: the parent has no such state; "
                          "expected one of Stopped, Running, got \"Runing\"; did you mean Running?"));
  EXPECT_THAT(mistakes_of_pump("    stateMapping: {Running: stoped}\n"),
              ElementsAre("site.yaml:4: children[0].stateMapping.Running: a pump has no such state; expected "
                          "one of Stopped, Running, Degraded, run, park, got \"stoped\"; did you mean "
                          "Stopped?"));
  EXPECT_THAT(mistakes_of_pump("    stateMapping: {Running: TryingToStart}\n"),
              ElementsAre(HasSubstr("a pump only passes through this state")));
  EXPECT_THAT(mistakes_of_pump("    stateMapping: {Running: run, running: park}\n"),
              ElementsAre(HasSubstr("the state Running is given twice, in other letters")));
}

class ReadNestedTree : public testing::Test {
 protected:
  ReadNestedTree() {
    WorkerType group;
    group.name = "group";
    group.states = {{"Stopped", Phase::stopped}, {"Active", Phase::running}, {"Closing", Phase::stopping}};
    group.fields = group.templates = {"children"};
    types_.add(std::move(group));
  }
  std::vector<std::string> mistakes(std::string_view text) const {
    std::vector<std::string> lines;
    for (const auto& problem : check_tree(text, "site.yaml", &types_)) lines.push_back(describe(problem));
    return lines;
  }
  /// Groups within each other, the innermost with a pump of this configuration.
  static std::string groups(std::size_t levels, std::string_view config) {
    std::string text = "children:\n";
    std::string indent = "  ";
    for (std::size_t level = 0; level < levels; ++level, indent += "    ")
      text += fmt::format("{0}- name: group-{1}\n{0}  workerType: group\n{0}  children:\n", indent, level);
    return text + fmt::format(
                      "{0}- name: leaf\n{0}  workerType: pump\n{0}  userSpec:\n{0}    config: |\n{0}"
                      "      {1}\n",
                      indent, config);
  }
  static constexpr std::string_view kPlant = R"(children:
  - name: plant
    workerType: group
    location: [acme]
    userSpec: {variables: {user: {IP: 10.0.0.7}}}
    children:
      - name: line
        workerType: group
        location: ['', north]
        children:
          - name: connection
            workerType: mqtt_client
            stateMapping: {active: connected, closing: stopped}
            userSpec:
              config: |
                url: tcp://{{ .IP }}:{{ .PORT }}/{{ "{{" }}
              variables: {user: {PORT: 1883}}
)";
  WorkerTypes types_ = types_for_config();
};

TEST_F(ReadNestedTree, ChildrenAreTheConfigurationOfTheirParentAndTemplatesOfTheirOwn) {
  const auto tree = read_tree(kPlant, "f", &types_);
  ASSERT_TRUE(tree) << tree.error().message();
  const auto& plant = tree->children.at(0);
  EXPECT_EQ(render(plant.user_spec.config, {}, {}), plant.user_spec.config);  // nothing of it is a template
  const auto lines = children_of_config(plant.user_spec.config).value();
  EXPECT_EQ(lines.at(0).user_spec.variables.user.at("location_path").text, R"("acme.north")");
  const auto connection = children_of_config(lines.at(0).user_spec.config).value().at(0);
  EXPECT_EQ(connection.user_spec.config, "url: tcp://{{ .IP }}:{{ .PORT }}/{{ \"{{\" }}\n");
  EXPECT_THAT(connection.state_mapping,
              ElementsAre(std::pair("Active", "Connected"), std::pair("Closing", "Stopped")));
}

TEST_F(ReadNestedTree, OfTwelveLevelsIsAsLongAsItsFile) {
  const std::string quotes(1000, '"');
  const auto tree = read_tree(groups(12, quotes), "f", &types_);
  ASSERT_TRUE(tree) << tree.error().message();
  auto worker = tree->children.at(0);
  EXPECT_LT(worker.user_spec.config.size(), 5000U);
  for (int level = 0; level < 12; ++level) {
    const auto below = children_of_config(worker.user_spec.config);
    ASSERT_TRUE(below) << level << worker.user_spec.config;
    worker = below->at(0);
  }
  EXPECT_EQ(worker.name, "leaf");
  EXPECT_EQ(worker.user_spec.config, quotes + "\n");
  EXPECT_EQ(read_tree(write_tree(*tree), "f", &types_).value(), *tree);
}

TEST_F(ReadNestedTree, OfFifteenLevelsWithALeafOfQuotesIsReadOrRefusedWithinItsSize) {
  constexpr int kLevels = 14;  // and the leaf
  const auto tree = read_tree(groups(kLevels, std::string(400'000, '"')), "f", &types_);
  ASSERT_TRUE(tree) << tree.error().message();
  EXPECT_LT(tree->children.at(0).user_spec.config.size(), 850'000U);
  EXPECT_THAT(mistakes(groups(kLevels, std::string(600'000, '"'))),
              ElementsAre(testing::MatchesRegex(
                  "site.yaml:43: .*children\\[0\\].children: the children are too large for one "
                  "configuration; expected at most 1048576 bytes as JSON, got 12[0-9]* bytes; did you mean "
                  "several groups with fewer workers, or shorter texts\\?")));
}

TEST_F(ReadNestedTree, IsWrittenAsItCanBeReadAgain) {
  const auto tree = read_tree(kPlant, "f", &types_).value();
  const auto text = write_tree(tree);
  EXPECT_THAT(text, HasSubstr("          - name: connection\n"));
  const auto again = read_tree(text, "f", &types_);
  ASSERT_TRUE(again) << again.error().message() << text;
  EXPECT_EQ(*again, tree);
}

TEST_F(ReadNestedTree, MistakesAreFoundOnTheirLines) {
  EXPECT_THAT(
      mistakes("children:\n  - name: plant\n    workerType: group\n    children:\n"
               "      - {name: a, workerType: pump, stateMapping: {running: run}}\n"
               "      - {name: a, workerType: pmup}\n"
               "      - {name: b, workerType: pump, userSpec: {config: 'x: {{ .X }}'}}\n"),
      ElementsAre(HasSubstr("site.yaml:5: children[0].children[0].stateMapping.running: the parent has "
                            "no such state; expected one of Stopped, Active, Closing"),
                  HasSubstr("site.yaml:6: children[0].children[1].name: the name \"a\" is given twice"),
                  HasSubstr("site.yaml:6: children[0].children[1].workerType: "),
                  HasSubstr("site.yaml:7: children[0].children[2].userSpec.config: there is no "
                            "variable .X")));
  EXPECT_THAT(
      mistakes("children:\n  - name: p\n    workerType: pump\n    children: []\n"),
      ElementsAre(HasSubstr("site.yaml:4: children[0].children: a pump does not take the key children")));
  EXPECT_THAT(
      mistakes("children:\n  - name: p\n    workerType: group\n    userSpec: {config: 'children: []'}\n"
               "    children: []\n"),
      ElementsAre(HasSubstr("the worker has a configuration and children")));
}

TEST_F(ReadTree, WithoutTypesTheyAreNotChecked) {
  const auto tree =
      read_tree("children: [{name: a, workerType: any, stateMapping: {running: anything}}]", "f", nullptr);
  ASSERT_TRUE(tree.has_value()) << tree.error().message();
  EXPECT_THAT(tree->children.at(0).state_mapping, ElementsAre(std::pair("Running", "anything")));
}

TEST_F(ReadTree, ManyMistakesAreCounted) {
  std::string text = "children:\n";
  for (int i = 0; i < 120; ++i) text += "  - {name: a/b, workerType: pump}\n";
  const auto tree = read_tree(text, "f", &types_);
  ASSERT_FALSE(tree.has_value());
  EXPECT_THAT(tree.error().message(), testing::EndsWith("\nf: and 20 more"));
  EXPECT_EQ(check_tree(text, "f", &types_).size(), 120U);
}

}  // namespace
}  // namespace pawl::workers
